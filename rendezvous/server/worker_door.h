// Where workers that no agent started get their credentials.
#ifndef RENDEZVOUS_SERVER_WORKER_DOOR_H_
#define RENDEZVOUS_SERVER_WORKER_DOOR_H_

#include <map>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/env.h"
#include "base/event_loop.h"
#include "proto/agent.pb.h"
#include "rendezvous/bootstrap/bootstrap_socket.h"
#include "rendezvous/membership/events.h"

namespace hvd {

// Serves one job's workers on this machine, of this process's user, on a thread of its own.
// Thread-safe.
class WorkerDoor {
 public:
  // `bootstrap` is for every worker, but for its number and host.   ResourceExhausted, Internal: no
  // socket to be had.
  static absl::StatusOr<std::unique_ptr<WorkerDoor>> Open(pb::WorkerBootstrap bootstrap);
  ~WorkerDoor();

  // Lets the worker in from now on. Returns what it must find in its environment.
  Environment Expect(const StartWorkerEffect& start);

  // Lets it in no more.
  void Forget(WorkerId worker);

 private:
  explicit WorkerDoor(pb::WorkerBootstrap bootstrap) : bootstrap_(std::move(bootstrap)) {}
  BootstrapSocket::Response Answer(uint64_t worker);

  const pb::WorkerBootstrap bootstrap_;
  absl::Mutex mu_;
  std::map<uint64_t, std::string> host_of_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<BootstrapSocket> socket_;
  std::thread thread_;
};

}  // namespace hvd

#endif  // RENDEZVOUS_SERVER_WORKER_DOOR_H_
