// The local socket at which workers that a scheduler started, without an agent, get their
// credentials.
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

// Serves one job's workers on this machine, of this process's user, on a separate thread. It
// accepts a process that presents the variables from Expect: the scheduler decides which processes
// are workers, and in which container they run. Thread-safe.
class LocalWorkerEndpoint {
 public:
  // Opens the socket. `bootstrap` is the answer to every worker, except for the worker's id and
  // host. The workers' words and the names of the socket are derived from `secret_key`: a restarted
  // process must have the same, in order to accept the workers that its predecessor expected.
  // `on_dying` is called, from any thread, for each worker whose process dies before Forget; it
  // must not block.
  // Errors:
  //   - AlreadyExists: other processes use all names of the socket.
  //   - ResourceExhausted, Internal: no socket can be made.
  static absl::StatusOr<std::unique_ptr<LocalWorkerEndpoint>> Open(
      pb::WorkerBootstrap bootstrap, const std::string& secret_key,
      std::function<void(WorkerId)> on_dying);
  ~LocalWorkerEndpoint();

  // Accepts the worker from now on. Returns the variables that its environment must contain.
  Environment Expect(const membership::StartWorkerEffect& start);

  // Accepts a worker for which an earlier process has called Expect.
  void ExpectAgain(WorkerId worker, const std::string& host);

  // Rejects the worker from now on.
  void Forget(WorkerId worker);

 private:
  struct Expected {
    std::string host;
    std::string word;
    std::optional<os::OtherProcess> asker;     // watched for its death; none: not visible from here
    std::shared_ptr<os::LivenessWatch> watch;  // of `asker`
  };

  LocalWorkerEndpoint(pb::WorkerBootstrap bootstrap, std::string secret_key,
                      std::function<void(WorkerId)> on_dying)
      : bootstrap_(std::move(bootstrap)),
        secret_key_(std::move(secret_key)),
        on_dying_(std::move(on_dying)) {}
  bootstrap::BootstrapSocket::Response Answer(const pb::WorkerHello& hello, pid_t asker);
  absl::Status Check(const pb::WorkerHello& hello) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const pb::WorkerBootstrap bootstrap_;
  const std::string secret_key_;
  const std::function<void(WorkerId)> on_dying_;
  absl::Mutex mu_;
  std::map<uint64_t, Expected> expected_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<bootstrap::BootstrapSocket> socket_;
  std::thread thread_;
};

}  // namespace hvd::rendezvous::server

#endif  // RENDEZVOUS_SERVER_LOCAL_WORKER_ENDPOINT_H_
