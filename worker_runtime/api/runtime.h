// The composition root of a worker: puts session, backend, control channel and engine together, one
// set for each world.
#ifndef WORKER_RUNTIME_API_RUNTIME_H_
#define WORKER_RUNTIME_API_RUNTIME_H_

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/env.h"
#include "collectives/backend.h"
#include "worker_runtime/engine/engine.h"
#include "worker_runtime/session/session.h"
#include "worker_runtime/session/world.h"

namespace hvd {

// Everything that lives as long as one world. Shut down when the user leaves it; destroyed when its
// last handle is released, since results may be memory of the engine's.
class ActiveWorld {
 public:
  // Connects this worker with the other members of `world`.   Errors as Backend::Connect and
  // ControlChannel::Connect.
  static absl::StatusOr<std::shared_ptr<ActiveWorld>> Connect(const RuntimeEnv& env,
                                                              WorkerWorld world,
                                                              ControlListener& listener,
                                                              Backend& backend, Session* session);
  ~ActiveWorld();

  const WorkerWorld& world() const { return world_; }
  Engine& engine() { return *engine_; }
  // Whether the daemon has said that this epoch is over. One load.
  bool changing() const { return changing_.load(std::memory_order_relaxed); }

  // Leaves in good order; what is in flight fails. Idempotent.
  void Shutdown();

 private:
  explicit ActiveWorld(WorkerWorld world) : world_(std::move(world)) {}

  const WorkerWorld world_;
  std::atomic<bool> changing_{false};
  std::unique_ptr<Communicator> communicator_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<EpochWatch> watch_;  // last: its callback uses the engine
};

// Thread-safe. Handles are numbered over all worlds of the process, so that an old one is never
// taken for a new one.
class Runtime {
 public:
  using Handle = int64_t;

  Runtime() = default;

  // See hvd_init. Besides the errors of joining and connecting:   InvalidArgument: an environment
  // variable has a bad value.
  absl::Status Init();
  // See hvd_shutdown.
  absl::Status Shutdown();

  // The world that is up, or nullptr.
  std::shared_ptr<ActiveWorld> active() const;

  // Engine's operations on the world that is up, or (for handles) on the one that the handle
  // belongs to.
  //   FailedPrecondition: there is no world.   NotFound: no such handle.
  absl::StatusOr<Handle> Submit(std::vector<TensorRequest> requests);
  absl::StatusOr<bool> Poll(Handle handle);
  absl::Status Wait(Handle handle);
  absl::StatusOr<const std::vector<TensorResult>*> Results(Handle handle);
  void Release(Handle handle);

  // See hvd_report_failure.
  void ReportFailure(const std::string& message, bool caused_by_peer);

 private:
  struct Ticket {
    std::shared_ptr<ActiveWorld> world;
    Engine::Handle handle = 0;
  };

  // Reads the environment and meets the agent, the first time.
  absl::Status Prepare() ABSL_EXCLUSIVE_LOCKS_REQUIRED(init_mutex_);
  absl::StatusOr<std::shared_ptr<ActiveWorld>> NextWorld()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(init_mutex_);
  absl::StatusOr<Ticket> Find(Handle handle) const;

  // Held while a world is made or left, which blocks; `mutex_` never is held that long.
  absl::Mutex init_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  bool prepared_ ABSL_GUARDED_BY(init_mutex_) = false;
  RuntimeEnv env_ ABSL_GUARDED_BY(init_mutex_);
  uint64_t lone_epoch_ ABSL_GUARDED_BY(init_mutex_) = 0;
  std::unique_ptr<Backend> backend_ ABSL_GUARDED_BY(init_mutex_);

  mutable absl::Mutex mutex_;
  // Made once; stays. nullptr in a process without an agent.
  std::shared_ptr<Session> session_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<ActiveWorld> active_ ABSL_GUARDED_BY(mutex_);
  std::map<Handle, Ticket> tickets_ ABSL_GUARDED_BY(mutex_);
  Handle next_handle_ ABSL_GUARDED_BY(mutex_) = 1;
};

}  // namespace hvd

#endif  // WORKER_RUNTIME_API_RUNTIME_H_
