// Where workers that no agent started get their credentials.
#ifndef RENDEZVOUS_SERVER_LOCAL_WORKER_ENDPOINT_H_
#define RENDEZVOUS_SERVER_LOCAL_WORKER_ENDPOINT_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/env.h"
#include "base/event_loop.h"
#include "base/os/liveness_watch.h"
#include "base/os/other_process.h"
#include "proto/agent.pb.h"
#include "rendezvous/bootstrap/bootstrap_socket.h"
#include "rendezvous/membership/events.h"

namespace hvd::rendezvous::server {

// Serves one job's workers on this machine, of this process's user, on a thread of its own. Whoever
// has what Expect has returned is let in: who starts workers, and in which container, is the
// scheduler's business. Thread-safe.
class WorkerDoor {
 public:
  // `bootstrap` is for every worker, but for its number and host. `on_dying` is told of each whose
  // process dies before Forget, from any thread; it must not block.   ResourceExhausted, Internal:
  // no socket to be had.
  static absl::StatusOr<std::unique_ptr<WorkerDoor>> Open(pb::WorkerBootstrap bootstrap,
                                                          std::function<void(WorkerId)> on_dying);
  ~WorkerDoor();

  // Lets the worker in from now on. Returns what it must find in its environment.
  Environment Expect(const membership::StartWorkerEffect& start);

  // Lets it in no more.
  void Forget(WorkerId worker);

 private:
  struct Expected {
    std::string host;
    std::string word;
    std::optional<os::OtherProcess> asker;  // whose death counts; none: it can't be seen from here
    std::shared_ptr<os::LivenessWatch> watch;  // of that one
  };

  WorkerDoor(pb::WorkerBootstrap bootstrap, std::function<void(WorkerId)> on_dying)
      : bootstrap_(std::move(bootstrap)), on_dying_(std::move(on_dying)) {}
  bootstrap::BootstrapSocket::Response Answer(const pb::WorkerHello& hello, pid_t asker);
  absl::Status Check(const pb::WorkerHello& hello) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const pb::WorkerBootstrap bootstrap_;
  const std::function<void(WorkerId)> on_dying_;
  absl::Mutex mu_;
  std::map<uint64_t, Expected> expected_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<bootstrap::BootstrapSocket> socket_;
  std::thread thread_;
};

}  // namespace hvd::rendezvous::server

#endif  // RENDEZVOUS_SERVER_LOCAL_WORKER_ENDPOINT_H_
