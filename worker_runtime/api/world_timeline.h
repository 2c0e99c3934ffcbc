// The timeline of one world.
#ifndef WORKER_RUNTIME_API_WORLD_TIMELINE_H_
#define WORKER_RUNTIME_API_WORLD_TIMELINE_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "worker_runtime/engine/engine.h"
#include "worker_runtime/session/world.h"

namespace hvd::worker_runtime::api {

// Rank 0 decides for all ranks when events are recorded, and writes the file. Thread-safe. `world`
// must outlive it, and it must outlive the engines.
class WorldTimeline {
 public:
  explicit WorldTimeline(const session::WorkerWorld& world) : world_(world) {}

  // Sets the options of the world's engine; those of its process sets get the same recorder.
  void Equip(engine::EngineOptions& options);

  // On rank 0: makes all ranks record from now on, for this file, or with `of_job` for this world's
  // one of a job's files (TracePathOf). Events recorded for an earlier file go to that one. No
  // effect on other ranks.
  // Errors:
  //   - InvalidArgument: the file can't be written; names it and says why.
  absl::Status Start(engine::Engine& engine, const std::string& path, bool mark_cycles,
                     bool of_job);

  // On rank 0: stops the recording and waits until the file is complete. No effect on other ranks,
  // or if there is no timeline.
  // Errors:
  //   - DeadlineExceeded: the file is not complete in time.
  //   - ResourceExhausted: it could not be written.
  absl::Status Stop(engine::Engine& engine);

  // Rank 0's last order; nullopt: there was none. Known on all ranks.
  std::optional<negotiation::TimelineOrder> wanted() const;

 private:
  const session::WorkerWorld& world_;
  const std::shared_ptr<timeline::Recorder> recorder_ = std::make_shared<timeline::Recorder>();
  absl::Mutex order_mutex_;  // held while an order is passed to the engine
  std::shared_ptr<timeline::TraceFile> file_
      ABSL_GUARDED_BY(order_mutex_);  // on rank 0, while there is one
  mutable absl::Mutex mutex_;         // the engine carries out an order under its own locks
  std::optional<negotiation::TimelineOrder> wanted_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hvd::worker_runtime::api

#endif  // WORKER_RUNTIME_API_WORLD_TIMELINE_H_
