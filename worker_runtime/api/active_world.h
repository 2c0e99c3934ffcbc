// One world that this worker is a member of, connected and at work.
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
// together. Thread-safe. Once it was left no thread and no descriptor of it is there any more.
class ActiveWorld {
 public:
  // Connects this worker with the other members of `world`, and starts the timeline and the tuner
  // that `env` asks for. Listens to the daemon meanwhile, so
  // that nobody waits for a member that has died.   Aborted: the daemon has said that the epoch is
  // over.   InvalidArgument: a file that `env` names can't be written.   Otherwise errors as
  // Backend::Connect and ControlChannel::Connect. `session` is nullptr in
  // a world of one that no daemon knows of; else it must outlive the world.
  static absl::StatusOr<std::shared_ptr<ActiveWorld>> Connect(
      const settings::RuntimeEnv& env, session::WorkerWorld world,
      control::ControlListener& listener, collectives::Backend& backend,
      std::shared_ptr<collectives::DeviceBackend> devices, session::Session* session);
  ~ActiveWorld();

  const session::WorkerWorld& world() const { return world_; }
  // Who holds an engine has the results of its handles, also when the world was left.
  const std::shared_ptr<engine::Engine>& engine() const { return group_->engine(); }
  ProcessSets& process_sets() { return *sets_; }
  const ObjectSeals& seals() const { return seals_; }
  // ObjectSeals::Open; what was changed on the way ends the epoch.
  absl::Status OpenSealed(const ObjectOperation& operation,
                          absl::Span<const ObjectSeals::Sealed> objects);

  // See WorldTimeline.
  absl::Status StartTimeline(const std::string& path, bool mark_cycles) {
    return timeline_.Start(*engine(), path, mark_cycles, /*of_job=*/false);
  }
  absl::Status StopTimeline() { return timeline_.Stop(*engine()); }
  std::optional<negotiation::TimelineOrder> wanted_timeline() const { return timeline_.wanted(); }

  // Whether the epoch is over or another one is wanted, as far as this rank was told. A few loads.
  bool changing() const { return changing_.load(std::memory_order_relaxed); }

  // Whether commits of this world may count. On rank 0 of an elastic job's; see WorldLease::Check.
  absl::Status CheckLease();

  // Leaves in good order; what is in flight fails. Idempotent.
  void Shutdown();

  // Leaves for the next world. If all others are about to do so, too, in good order; else at once,
  // waiting for no peer.
  void LeaveForNext();

 private:
  // Gives up what belongs to threads that this process does not have.
  void Leak() ABSL_NO_THREAD_SAFETY_ANALYSIS;
  ActiveWorld(const settings::RuntimeEnv& env, session::WorkerWorld world);

  absl::Status ConnectPlanes(const settings::RuntimeEnv& env, control::ControlListener& listener,
                             collectives::Backend& backend,
                             std::shared_ptr<collectives::DeviceBackend> devices,
                             session::Session* session);
  // On rank 0.
  absl::Status StartMeasuring(const settings::RuntimeEnv& env, engine::EngineOptions& options);
  absl::Status StartTimelineOf(const settings::RuntimeEnv& env);
  // A line of the log at level debug: what has just become of this world.
  void Trace(absl::string_view text);
  // What an engine's thread has found; the ranks are the world's.
  void OnStall(const negotiation::StallReport& report);
  // The daemon did not take it.
  void OnUntoldStall(const session::StallReporter::Report& report);
  // What the watch's thread hears.
  void OnChange(session::EpochEvent change, const std::string& reason);

  const session::WorkerWorld world_;
  const std::shared_ptr<spdlog::logger> logger_;
  const pid_t process_ = getpid();
  ObjectSeals seals_;
  WorldTimeline timeline_;
  std::shared_ptr<TuningLog> tuning_log_;  // on rank 0, if one is wanted
  std::atomic<bool> changing_{false};
  // Cancelled when the daemon says that the epoch is over. Until Shutdown.
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
