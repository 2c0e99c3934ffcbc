// A fake rendezvous daemon in memory, for tests. The test controls it; it makes no decisions.
#ifndef WORKER_RUNTIME_API_TESTING_FAKE_DAEMON_H_
#define WORKER_RUNTIME_API_TESTING_FAKE_DAEMON_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "rendezvous/client/rendezvous_client.h"
#include "worker_runtime/session/rendezvous_session.h"

namespace hvd::worker_runtime::api {

// Thread-safe; must outlive its clients.
class FakeDaemon {
 public:
  // Forms a world when `size` workers have asked for one, with ranks in the order of their ids.
  explicit FakeDaemon(int size) : size_(size) {}

  session::ClientFactory NewClients();

  // Sets the answer to a worker's next JoinWorld, in place of a world.
  void AnswerNextJoin(uint64_t worker, pb::JoinWorldResponse answer);
  void SetSize(int size);
  // Breaks the current epoch. Ends its watches and exchanges.
  void Break(const std::string& reason);
  // Announces that the world is about to change.
  void Change(const std::string& reason);
  // Blocks until this many workers are waiting in JoinWorld.
  void AwaitJoins(int count);
  // Blocks until this many workers of the current epoch have sent a value to an exchange.
  void AwaitExchanges(int count);

  std::vector<pb::JoinWorldRequest> joins() const;
  std::vector<pb::ReportRequest> reports() const;
  // Blocks until a stall in `what` is reported; returns the report.
  pb::ReportStallRequest AwaitStall(const std::string& what);

 private:
  friend class FakeDaemonClient;

  absl::StatusOr<pb::JoinWorldResponse> Join(const pb::JoinWorldRequest& request,
                                             const bool& cancelled);
  absl::StatusOr<pb::WatchEpochResponse> Watch(const pb::WatchEpochRequest& request,
                                               const bool& cancelled);
  absl::StatusOr<pb::ExchangeResponse> Exchange(const pb::ExchangeRequest& request,
                                                const bool& cancelled);
  // Answers progress reports like the real daemon, but does not store them.
  absl::StatusOr<pb::ReportResponse> Report(const pb::ReportRequest& request);
  void ReportStall(const pb::ReportStallRequest& request);
  void Cancel(bool& cancelled);

  void FormWorld() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsOver(uint64_t epoch) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return epoch != world_.epoch() || broken_;
  }

  mutable absl::Mutex mutex_;
  int size_ ABSL_GUARDED_BY(mutex_);
  pb::World world_ ABSL_GUARDED_BY(mutex_);
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;
  bool changing_ ABSL_GUARDED_BY(mutex_) = false;
  std::string reason_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, pb::JoinWorldRequest> waiting_ ABSL_GUARDED_BY(mutex_);  // by worker
  std::map<uint64_t, std::deque<pb::JoinWorldResponse>> answers_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::map<int, std::string>> rounds_ ABSL_GUARDED_BY(mutex_);
  std::vector<pb::JoinWorldRequest> joins_ ABSL_GUARDED_BY(mutex_);
  std::vector<pb::ReportRequest> reports_ ABSL_GUARDED_BY(mutex_);
  std::vector<pb::ReportStallRequest> stalls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hvd::worker_runtime::api

#endif  // WORKER_RUNTIME_API_TESTING_FAKE_DAEMON_H_
