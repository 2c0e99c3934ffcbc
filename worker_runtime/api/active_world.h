// The active world: the world of which this worker is a member, connected and running.
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
#include "collectives/peer/peer_port.h"
#include "worker_runtime/api/object_seals.h"
#include "worker_runtime/api/process_sets.h"
#include "worker_runtime/api/tuning_log.h"
#include "worker_runtime/api/world_timeline.h"
#include "worker_runtime/engine/engine.h"
#include "worker_runtime/group/connected_group.h"
#include "worker_runtime/session/rendezvous_session.h"
#include "worker_runtime/session/world.h"

namespace hvd::worker_runtime::api {

// Owns everything that lives as long as one world: its engine and those of its process sets, which
// fail together. Thread-safe. After Shutdown or LeaveForNext none of its threads and descriptors
// remains.
class ActiveWorld {
 public:
  // Connects this worker with the other members of `world`, which know `port`, and starts the
  // timeline and the tuner if `env` has them enabled. Keeps the port only if its connections need
  // it: ranks that share memory do not. Watches the epoch while it connects, so it does not wait
  // for a member that has died. `session` is nullptr in a world of one without a daemon; else it
  // must outlive the world. Errors:
  //   - Aborted: the daemon has reported that the epoch is over.
  //   - InvalidArgument: a file that `env` names can't be written.
  //   - Others: those of Backend::Connect and ControlChannel::Connect.
  static absl::StatusOr<std::shared_ptr<ActiveWorld>> Connect(
      const settings::RuntimeEnv& env, session::WorkerWorld world,
      std::shared_ptr<collectives::peer::PeerPort> port, collectives::Backend& backend,
      std::shared_ptr<collectives::DeviceBackend> devices, session::Session* session);
  ~ActiveWorld();

  const session::WorkerWorld& world() const { return world_; }
  // Results stay valid while the engine is referenced, even after the world was left.
  // REQUIRES: Connect has returned this world.
  const std::shared_ptr<engine::Engine>& engine() const { return group_->engine(); }
  ProcessSets& process_sets() { return *sets_; }
  const ObjectSeals& seals() const { return seals_; }
  // Calls ObjectSeals::Open. An object whose seal is wrong ends the epoch.
  // Errors: those of ObjectSeals::Open.
  absl::Status OpenSealed(const ObjectOperation& operation,
                          absl::Span<const ObjectSeals::Sealed> objects);

  // See WorldTimeline.
  absl::Status StartTimeline(const std::string& path, bool mark_cycles) {
    return timeline_.Start(*engine(), path, mark_cycles, /*of_job=*/false);
  }
  absl::Status StopTimeline() { return timeline_.Stop(*engine()); }
  std::optional<negotiation::TimelineOrder> wanted_timeline() const { return timeline_.wanted(); }

  // Whether the epoch is over or about to change, as far as this rank knows. One atomic load.
  bool changing() const { return changing_.load(std::memory_order_relaxed); }

  // Checks that this world may still make commits. On rank 0 of an elastic job: see
  // WorldLease::Check. On other ranks always OK.
  absl::Status CheckLease();

  // On rank 0 of an elastic job: has the daemon told soon that training has begun with `commit`.
  void NoteBegin(uint64_t commit);

  // The first rank that this one found the network not to reach; nullopt: none.
  std::optional<int> unreached() const;

  // Leaves the world cleanly; operations in flight fail. Idempotent.
  void Shutdown();

  // Leaves for the next world: cleanly if the world is about to change, since all ranks leave then;
  // else by aborting the engine, without waiting for any peer.
  void LeaveForNext();

 private:
  // In a forked child: leaks the objects that belong to threads of the parent.
  void Leak() ABSL_NO_THREAD_SAFETY_ANALYSIS;
  ActiveWorld(const settings::RuntimeEnv& env, session::WorkerWorld world);

  absl::Status ConnectPlanes(const settings::RuntimeEnv& env,
                             std::shared_ptr<collectives::peer::PeerPort> port,
                             collectives::Backend& backend,
                             std::shared_ptr<collectives::DeviceBackend> devices,
                             session::Session* session);
  void ReportStallsTo(session::Session& session, engine::EngineOptions& options);
  // Lets the world's engine notice a planned change, and its end abort the process sets.
  void FollowWorld(engine::EngineOptions& options);
  // Passes on to the engine what has changed while it was not up. `lease` may be null.
  void BeginEngine(std::unique_ptr<session::WorldLease> lease);
  // Rank 0: logs the environment's notes and sets up autotuning.
  void StartMeasuring(const settings::RuntimeEnv& env, engine::EngineOptions& options);
  void OpenTuningLog(const std::string& path);
  void StartTimelineOf(const settings::RuntimeEnv& env);
  // Logs a change of this world at level debug.
  void Trace(absl::string_view text);
  // Handles a stall found by an engine; called on that engine's thread. The ranks are the world's.
  void OnStall(const negotiation::StallReport& report);
  // Handles a stall report that the daemon did not accept.
  void OnUntoldStall(const session::StallReporter::Report& report);
  void NoteUnreached(std::optional<int> rank);
  // Tells what a backend has chosen; called on the engine's thread.
  void OnChoice(const std::string& choice);
  // Handles a change of the epoch; called on the watch's thread.
  void OnChange(session::EpochEvent change, const std::string& reason);

  const session::WorkerWorld world_;
  const std::shared_ptr<spdlog::logger> logger_;
  const pid_t process_ = getpid();
  ObjectSeals seals_;
  WorldTimeline timeline_;
  std::shared_ptr<TuningLog> tuning_log_;  // on rank 0, if the environment names a file
  std::atomic<bool> changing_{false};
  // Cancelled when the daemon reports the end of the epoch. nullptr after Shutdown.
  std::unique_ptr<Cancellation> broken_ = std::make_unique<Cancellation>();
  mutable absl::Mutex mutex_;
  std::optional<int> unreached_ ABSL_GUARDED_BY(mutex_);
  bool engine_is_up_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<group::ConnectedGroup> group_;  // all ranks; set once
  std::unique_ptr<ProcessSets> sets_;             // set once
  session::Session* session_ = nullptr;
  std::unique_ptr<session::StallReporter> stalls_;  // nullptr without a daemon
  // On rank 0 of an elastic job.
  std::shared_ptr<session::WorldLease> lease_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<session::EpochWatch> watch_;  // last: its callback uses the members above
};

}  // namespace hvd::worker_runtime::api

#endif  // WORKER_RUNTIME_API_ACTIVE_WORLD_H_
