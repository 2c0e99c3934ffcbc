// The timeline control of one world: starts and stops recording on all ranks.
#ifndef WORKER_RUNTIME_API_WORLD_TIMELINE_H_
#define WORKER_RUNTIME_API_WORLD_TIMELINE_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "base/logging.h"
#include "worker_runtime/engine/engine.h"
#include "worker_runtime/session/world.h"

namespace hvd::worker_runtime::api {

// Rank 0 starts and stops the recording for all ranks, and writes the file. Thread-safe. `world`
// must outlive this object, which must outlive the engines.
class WorldTimeline {
 public:
  // `logger` gets a warning if the file can't be written to its end.
  WorldTimeline(const session::WorkerWorld& world, std::shared_ptr<spdlog::logger> logger)
      : world_(world), logger_(std::move(logger)) {}

  // Sets the timeline's fields in the options of the world's engine. The engines of process sets
  // get the same recorder.
  void Equip(engine::EngineOptions& options);

  // On rank 0: makes all ranks record from now on, into `path`; with `of_job` into a separate file
  // for this world, TracePathOf(path). Events recorded before still go to the earlier file. No
  // effect on other ranks.
  // Errors:
  //   - InvalidArgument: the file can't be written; the message names it and the reason.
  absl::Status Start(engine::Engine& engine, const std::string& path, bool mark_cycles,
                     bool of_job);

  // On rank 0: stops the recording and waits until the file is complete. No effect on other ranks,
  // or if there is no timeline.
  // Errors:
  //   - DeadlineExceeded: the file was not completed in time.
  //   - ResourceExhausted: the file could not be written.
  absl::Status Stop(engine::Engine& engine);

  // Records, as an activity of no length, what a backend has chosen by measuring.
  void NoteChoice(const std::string& choice);

  // Returns rank 0's last order, which is known on all ranks; nullopt: there was none.
  std::optional<negotiation::TimelineOrder> wanted() const;

 private:
  const session::WorkerWorld& world_;
  const std::shared_ptr<spdlog::logger> logger_;
  const std::shared_ptr<timeline::Recorder> recorder_ = std::make_shared<timeline::Recorder>();
  absl::Mutex order_mutex_;  // held while an order is passed to the engine
  std::shared_ptr<timeline::TraceFile> file_
      ABSL_GUARDED_BY(order_mutex_);  // on rank 0 while it records
  // Separate from order_mutex_: the engine's thread takes it while another thread may hold
  // order_mutex_ and wait for the engine.
  mutable absl::Mutex mutex_;
  std::optional<negotiation::TimelineOrder> wanted_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hvd::worker_runtime::api

#endif  // WORKER_RUNTIME_API_WORLD_TIMELINE_H_
