// The timeline's part in the engine: starts and stops the recorder, sends its events to rank 0, and
// on rank 0 passes the events of all ranks to the file.
#ifndef WORKER_RUNTIME_ENGINE_ENGINE_TIMELINE_H_
#define WORKER_RUNTIME_ENGINE_ENGINE_TIMELINE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "collectives/communicator.h"
#include "worker_runtime/negotiation/messages.h"
#include "worker_runtime/timeline/recorder.h"
#include "worker_runtime/timeline/trace_file.h"

namespace hvd::worker_runtime::engine {

// Order is thread-safe; the other methods are called by the thread that runs the engine's rounds.
// The constructor's arguments must outlive it. The recorder also holds the events of the process
// sets' engines, which are sent with those of the world's engine.
class EngineTimeline {
 public:
  EngineTimeline(timeline::Recorder& recorder, collectives::Communicator& communicator,
                 absl::Duration timeout)
      : recorder_(recorder), communicator_(communicator), options_{timeout} {}

  // Rank 0, from any thread: queues an order for all ranks, with the file for their events
  // (nullptr: stop), and fills in its generation. After CloseFiles the file is closed at once.
  void Order(negotiation::TimelineOrder order, std::shared_ptr<timeline::TraceFile> file);
  // Rank 0: removes and returns the oldest order in the queue.
  std::optional<negotiation::TimelineOrder> TakeOrder();

  // Starts or stops recording. Every rank calls it at the same point of its plans. A start measures
  // the offset of this rank's clock from rank 0's, which is a collective.
  // Errors: those of Communicator.
  absl::Status CarryOut(const negotiation::TimelineOrder& order);

  // Returns when NextPart must be called again.
  absl::Time NextDue(absl::Time now) const;
  // Returns the part to send to rank 0 now; nullopt: none.
  std::optional<negotiation::TimelinePart> NextPart(absl::Time now);
  // Rank 0: writes a part that `rank` has recorded to the file of its generation.
  void Receive(int rank, negotiation::TimelinePart part);

  // Stops recording. NextPart then returns the remaining parts.
  void Stop();
  // Rank 0: returns whether the last part of some rank is still missing.
  bool AwaitsParts() const { return !files_.empty(); }
  // Rank 0: closes all files; further parts are dropped.
  void CloseFiles();

 private:
  absl::Duration Old() const;

  timeline::Recorder& recorder_;
  collectives::Communicator& communicator_;
  const collectives::CallOptions options_;
  uint64_t generation_ = 0;  // 0: off
  std::deque<negotiation::TimelinePart> outbox_;
  std::map<uint64_t, std::shared_ptr<timeline::TraceFile>> files_;  // by generation
  std::map<uint64_t, int> missing_;  // by generation: the number of last parts not received yet
  absl::Mutex mutex_;
  uint64_t last_generation_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<std::pair<negotiation::TimelineOrder, std::shared_ptr<timeline::TraceFile>>> orders_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace hvd::worker_runtime::engine

#endif  // WORKER_RUNTIME_ENGINE_ENGINE_TIMELINE_H_
