// The engine's part in the timeline: carries out orders, forwards recorded events, and on rank 0
// receives those of all ranks.
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

// Used by the engine's thread, except Order. The constructor's arguments must outlive it. The
// recorder holds more than this engine's events: those of process sets' engines travel with the
// world's.
class EngineTimeline {
 public:
  EngineTimeline(timeline::Recorder& recorder, collectives::Communicator& communicator,
                 absl::Duration timeout)
      : recorder_(recorder), communicator_(communicator), options_{timeout} {}

  // Rank 0, from any thread: the order for all ranks, and the file for their events (nullptr:
  // stop). Fills in the generation. After CloseFiles the file is closed at once.
  void Order(negotiation::TimelineOrder order, std::shared_ptr<timeline::TraceFile> file);
  // Rank 0: the oldest order that was not taken yet.
  std::optional<negotiation::TimelineOrder> TakeOrder();

  // Every rank, at the same point of its plans.
  // Errors: those of Communicator.
  absl::Status CarryOut(const negotiation::TimelineOrder& order);

  // When NextPart must be called again.
  absl::Time NextDue(absl::Time now) const;
  // The part to send to rank 0 now.
  std::optional<negotiation::TimelinePart> NextPart(absl::Time now);
  // Rank 0: a part that a rank has recorded.
  void Receive(int rank, negotiation::TimelinePart part);

  // Stops recording; NextPart returns the rest.
  void Stop();
  // Rank 0: whether some rank has not sent its last part.
  bool AwaitsParts() const { return !files_.empty(); }
  // Rank 0: nothing more will come.
  void CloseFiles();

 private:
  absl::Duration Old() const;

  timeline::Recorder& recorder_;
  collectives::Communicator& communicator_;
  const collectives::CallOptions options_;
  uint64_t generation_ = 0;  // 0: off
  std::deque<negotiation::TimelinePart> outbox_;
  std::map<uint64_t, std::shared_ptr<timeline::TraceFile>> files_;  // by generation
  std::map<uint64_t, int> missing_;  // ranks whose last part has not come
  absl::Mutex mutex_;
  uint64_t last_generation_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<std::pair<negotiation::TimelineOrder, std::shared_ptr<timeline::TraceFile>>> orders_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace hvd::worker_runtime::engine

#endif  // WORKER_RUNTIME_ENGINE_ENGINE_TIMELINE_H_
