// The active world: the one that this worker is a member of, connected and running.
#ifndef WORKER_RUNTIME_API_ACTIVE_WORLD_H_
#define WORKER_RUNTIME_API_ACTIVE_WORLD_H_

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "base/cancellation.h"
#include "base/logging.h"
#include "base/settings/runtime_env.h"
#include "collectives/backend.h"
#include "collectives/device_communicator.h"
#include "worker_runtime/api/connected_group.h"
#include "worker_runtime/api/object_seals.h"
#include "worker_runtime/api/process_sets.h"
#include "worker_runtime/api/tuning_log.h"
#include "worker_runtime/api/world_timeline.h"
#include "worker_runtime/engine/engine.h"
#include "worker_runtime/session/rendezvous_session.h"
#include "worker_runtime/session/world.h"

namespace hvd::worker_runtime::api {

// Everything that lives as long as one world: its engine and those of its process sets, which fail
// together. Thread-safe. After it was left, none of its threads and descriptors remains.
class ActiveWorld {
 public:
  // Connects this worker with the other members of `world`, and starts the timeline and the tuner
  // that `env` asks for. Watches the epoch meanwhile, so that no rank waits for a member that has
  // died. `session` is nullptr in a world of one without a daemon; else it must outlive the world.
  // Errors:
  //   - Aborted: the daemon has reported that the epoch is over.
  //   - InvalidArgument: a file that `env` names can't be written.
  //   - Others: those of Backend::Connect and ControlChannel::Connect.
  static absl::StatusOr<std::shared_ptr<ActiveWorld>> Connect(
      const settings::RuntimeEnv& env, session::WorkerWorld world,
      control::ControlListener& listener, collectives::Backend& backend,
      std::shared_ptr<collectives::DeviceBackend> devices, session::Session* session);
  ~ActiveWorld();

  const session::WorkerWorld& world() const { return world_; }
  // Results stay valid while the engine is referenced, even after the world was left.
  const std::shared_ptr<engine::Engine>& engine() const { return group_->engine(); }
  ProcessSets& process_sets() { return *sets_; }
  const ObjectSeals& seals() const { return seals_; }
  // ObjectSeals::Open; an object that was changed on the way ends the epoch.
  absl::Status OpenSealed(const ObjectOperation& operation,
                          absl::Span<const ObjectSeals::Sealed> objects);

  // See WorldTimeline.
  absl::Status StartTimeline(const std::string& path, bool mark_cycles) {
    return timeline_.Start(*engine(), path, mark_cycles, /*of_job=*/false);
  }
  absl::Status StopTimeline() { return timeline_.Stop(*engine()); }
  std::optional<negotiation::TimelineOrder> wanted_timeline() const { return timeline_.wanted(); }

  // Whether the epoch is over or another one is wanted, as far as this rank knows. A few loads.
  bool changing() const { return changing_.load(std::memory_order_relaxed); }

  // Checks that commits of this world may count. On rank 0 of an elastic job's world; see
  // WorldLease::Check.
  absl::Status CheckLease();

  // Leaves cleanly; operations in flight fail. Idempotent.
  void Shutdown();

  // Leaves for the next world. If all others are about to do so, too, cleanly; else at once,
  // without waiting for any peer.
  void LeaveForNext();

 private:
  // In a forked child: leaks the objects that belong to threads of the parent.
  void Leak() ABSL_NO_THREAD_SAFETY_ANALYSIS;
  ActiveWorld(const settings::RuntimeEnv& env, session::WorkerWorld world);

  absl::Status ConnectPlanes(const settings::RuntimeEnv& env, control::ControlListener& listener,
                             collectives::Backend& backend,
                             std::shared_ptr<collectives::DeviceBackend> devices,
                             session::Session* session);
  // On rank 0.
  absl::Status StartMeasuring(const settings::RuntimeEnv& env, engine::EngineOptions& options);
  absl::Status StartTimelineOf(const settings::RuntimeEnv& env);
  // Logs a line at level debug: a change of this world.
  void Trace(absl::string_view text);
  // A stall that an engine's thread has found; the ranks are the world's.
  void OnStall(const negotiation::StallReport& report);
  // A report that the daemon did not accept.
  void OnUntoldStall(const session::StallReporter::Report& report);
  // A change that the watch's thread has received.
  void OnChange(session::EpochEvent change, const std::string& reason);

  const session::WorkerWorld world_;
  const std::shared_ptr<spdlog::logger> logger_;
  const pid_t process_ = getpid();
  ObjectSeals seals_;
  WorldTimeline timeline_;
  std::shared_ptr<TuningLog> tuning_log_;  // on rank 0, if one is wanted
  std::atomic<bool> changing_{false};
  // Cancelled when the daemon reports the end of the epoch. Until Shutdown.
  std::unique_ptr<Cancellation> broken_ = std::make_unique<Cancellation>();
  absl::Mutex mutex_;
  bool engine_is_up_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<ConnectedGroup> group_;  // all ranks; set once
  std::unique_ptr<ProcessSets> sets_;      // set once
  session::Session* session_ = nullptr;
  std::unique_ptr<session::StallReporter> stalls_;  // nullptr if no daemon knows of this world
  std::shared_ptr<session::WorldLease> lease_
      ABSL_GUARDED_BY(mutex_);                  // on rank 0 of an elastic job
  std::unique_ptr<session::EpochWatch> watch_;  // last: its callback uses the rest
};

}  // namespace hvd::worker_runtime::api

#endif  // WORKER_RUNTIME_API_ACTIVE_WORLD_H_
