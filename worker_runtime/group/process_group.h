// A process group: ranks that connect through a store of their own, without the daemon. It is the
// group of torch.distributed.
#ifndef WORKER_RUNTIME_GROUP_PROCESS_GROUP_H_
#define WORKER_RUNTIME_GROUP_PROCESS_GROUP_H_

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/logging.h"
#include "base/settings/runtime_env.h"
#include "collectives/backend.h"
#include "collectives/messages/messenger.h"
#include "worker_runtime/engine/engine.h"
#include "worker_runtime/group/connected_group.h"
#include "worker_runtime/group/store_exchange.h"

namespace hvd::worker_runtime::group {

struct ProcessGroupOptions {
  int rank = 0;
  int size = 1;
  std::string address;  // numeric, where the other ranks reach this one
  std::string name;     // in messages for users; empty: the group of all
  // How long this rank waits for the others to connect, and then for those of an operation.
  absl::Duration timeout = absl::Minutes(30);
  // What only processes of this rank's job know; empty: the rank belongs to no job.
  std::string job_secret = "";
  // TLS for all network traffic; nullptr: no encryption.
  std::shared_ptr<const net::TlsContext> tls = nullptr;
};

// Unlike a process set, it belongs to no world: only its members make it, and it lives until it is
// destroyed. Its operations have an engine of their own, and its messages between two ranks a
// messenger. The messenger fails with the engine. Thread-safe.
class ProcessGroup {
 public:
  // Every rank of the group must call it. Ranks with equal `host_identity` may share memory; empty:
  // none does with this rank. `store` is used during the call only. A part of the group's secret
  // goes through the store: without a job_secret the group is as private as the store is.
  // Errors:
  //   - InvalidArgument: there is no such rank, or the address is not numeric.
  //   - All errors of Store and ConnectedGroup::Connect.
  static absl::StatusOr<std::unique_ptr<ProcessGroup>> Connect(const ProcessGroupOptions& options,
                                                               const settings::RuntimeEnv& env,
                                                               collectives::Backend& backend,
                                                               const std::string& host_identity,
                                                               Store& store);
  // Calls Leave.
  ~ProcessGroup();

  // Leaves the group cleanly. Operations and transfers in flight fail, also those that other
  // threads wait for. Idempotent.
  void Leave();

  int size() const { return options_.size; }
  const std::shared_ptr<engine::Engine>& engine() const { return group_->engine(); }

  // nullptr: this rank is alone.
  collectives::messages::Messenger* messenger() const { return messenger_.get(); }

  // Returns why a transfer of the messenger has failed: `error`, or the group's failure, if the
  // messenger has only heard that another rank has failed. If the messenger is broken, blocks until
  // the other ranks were told.
  absl::Status CauseOf(const absl::Status& error);

  // Breaks the group for all ranks. Does not block.
  void Abort(const absl::Status& why) { engine()->Abort(why); }

 private:
  ProcessGroup(const ProcessGroupOptions& options, const settings::RuntimeEnv& env);

  absl::Status ConnectPlanes(const settings::RuntimeEnv& env, collectives::Backend& backend,
                             const std::string& host_identity, Store& store);
  absl::Status ConnectMessenger(collectives::GroupInfo group, collectives::KeyExchange& keys,
                                const std::string& host_identity);
  engine::EngineOptions EngineOptionsOf(const settings::RuntimeEnv& env);
  void OnEnd(const absl::Status& why, bool left);
  void OnStall(const negotiation::StallReport& report);

  const ProcessGroupOptions options_;
  const std::shared_ptr<spdlog::logger> logger_;
  std::unique_ptr<ConnectedGroup> group_;                        // set once
  std::unique_ptr<collectives::messages::Messenger> messenger_;  // set once
  absl::Mutex leave_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);         // held while it is left
  mutable absl::Mutex mutex_;
  bool left_ ABSL_GUARDED_BY(mutex_) = false;
  bool engine_has_ended_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status end_ ABSL_GUARDED_BY(mutex_);  // of the engine, unless it was left
};

}  // namespace hvd::worker_runtime::group

#endif  // WORKER_RUNTIME_GROUP_PROCESS_GROUP_H_
