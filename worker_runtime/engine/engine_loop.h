// The engine thread's work: announce what is new, learn what to run, run it.
#ifndef WORKER_RUNTIME_ENGINE_ENGINE_LOOP_H_
#define WORKER_RUNTIME_ENGINE_ENGINE_LOOP_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "collectives/communicator.h"
#include "worker_runtime/control/control_channel.h"
#include "worker_runtime/engine/blocked_waits.h"
#include "worker_runtime/engine/completion.h"
#include "worker_runtime/engine/engine.h"
#include "worker_runtime/engine/engine_timeline.h"
#include "worker_runtime/engine/executor.h"
#include "worker_runtime/engine/tensor_queue.h"
#include "worker_runtime/negotiation/coordinator.h"
#include "worker_runtime/negotiation/known_signatures.h"
#include "worker_runtime/negotiation/messages.h"

namespace hvd::worker_runtime::engine {

// The status of everything in flight once `rank` has left in good order.
absl::Status LeftWorldError(int rank);

// Run() belongs to one thread; the other methods are thread-safe. What is handed to the constructor
// must outlive Run().
//
// Rounds are worked by one thread at a time, whose turn it is: the engine's, or, where the control
// channel is shared memory or this rank is alone, one that waits for an operation. The latter saves
// two wake-ups, which take longer than a small operation does.
class EngineLoop {
 public:
  EngineLoop(const EngineOptions& options, collectives::Communicator& communicator,
             std::unique_ptr<control::ControlChannel> control, TensorQueue& queue,
             BlockedWaits& blocked);

  // Works until the epoch has ended, then fails what is in flight and closes the queue.
  void Run();

  // For a thread that waits for `done`: nothing is kept back any longer, and, if turns can be
  // taken, it takes them, unless another thread does, until it is done or nothing happens for some
  // microseconds.
  void Help(const Completion& done);

  // Somebody wants to hear of what is in the queue: nothing is kept back any longer.
  void Hurry();

  // There is something new in the queue or among the blocked waits.
  void Wake() { control_->Wake(); }
  // See Engine::OrderTimeline.
  void OrderTimeline(negotiation::TimelineOrder order, std::shared_ptr<timeline::TraceFile> file);
  // See Engine::SetWorldChanging.
  void SetWorldChanging();
  // Ends the epoch in good order.
  void Leave();
  // Ends it at once. The first reason stays.
  void Abort(const absl::Status& reason);

 private:
  // One round, which waits for nothing; a status that is not OK ends the epoch.
  absl::Status RunCycle();
  // A round of the engine's thread; how long it may sleep afterwards.
  absl::Duration TakeTurn();
  void HandOver() ABSL_EXCLUSIVE_LOCKS_REQUIRED(turn_);
  void End(absl::Status status);
  absl::Status CheckOrders();
  absl::Status AnnounceNew();
  absl::Status FillInbox(absl::Duration timeout);
  absl::Status HandleInbox();
  absl::Status HandleAnnouncement(const control::ControlChannel::Message& message);
  absl::Status RunNextPlan();

  absl::Duration ReceiveTimeout() const;
  bool FillAnnouncement(negotiation::Announcement& announcement);
  absl::Status Announce(negotiation::Announcement announcement);
  // To all members; the first error, which keeps it from no other.
  absl::Status SendPlan(const negotiation::Plan& plan);
  absl::Status CarryOut(const negotiation::Plan& plan);
  absl::Status RunBatch(const negotiation::Batch& batch);
  absl::Status ReportStall();
  // They fail with the others when the reason is known.
  void NoteBroken(const Executor::Parts& parts);
  void RecordPlanned(const OperationTensor& tensor);
  absl::Status Heard(int rank, negotiation::Announcement announcement);
  void Deliver(const negotiation::Failure& failure);

  // What follows the end of the epoch (engine_end.cc).
  // Tells the others if need be; returns why the epoch ended, from the one who knows best.
  absl::Status Conclude(absl::Status status);
  bool HasLeft() const;
  // `status` with options_.ranks_note, if that is not in it yet.
  absl::Status WithRanksNote(const absl::Status& status) const;
  // Sends what was recorded and not sent yet, and takes what has come already.
  void SendLastEvents();
  void TakeLastEvents(const control::ControlChannel::Message& message);
  void ReportToMembers(const absl::Status& status);
  void ReportToRoot(const absl::Status& status);
  // What a collective reports is often a consequence; the cause comes by the control channel.
  absl::Status LookForCause(const absl::Status& own);
  std::optional<absl::Status> FindCause(const control::ControlChannel::Message& message);

  bool is_root() const { return coordinator_ != nullptr; }

  const EngineOptions options_;
  const int rank_;
  const int size_;
  collectives::Communicator& communicator_;
  const std::unique_ptr<control::ControlChannel> control_;
  TensorQueue& queue_;
  BlockedWaits& blocked_;

  EngineTimeline timeline_;
  Executor executor_;
  DeviceExecutor devices_;
  negotiation::KnownSignatures known_;
  std::unique_ptr<negotiation::Coordinator> coordinator_;  // on rank 0
  uint64_t seen_sequence_ = 0;
  int unacknowledged_evictions_ = 0;  // plans with evictions since the last announcement
  uint64_t announced_blocked_version_ = 0;
  uint64_t announced_sequence_ = 0;
  bool announced_change_ = false;
  absl::Time leave_by_ = absl::InfiniteFuture();        // finite once leaving has been announced
  std::deque<control::ControlChannel::Message> inbox_;  // received, not handled yet
  bool collective_failed_ = false;                      // here or, on rank 0, elsewhere
  std::vector<OperationTensor> broken_;                 // what the failed collective was about
  std::optional<negotiation::EpochEnd> end_;            // as the last plan says

  absl::Mutex turn_;  // held by whoever works; all of the above belongs to the holder
  absl::Status failed_ ABSL_GUARDED_BY(turn_);  // of a round; the engine's thread ends the epoch
  bool has_ended_ ABSL_GUARDED_BY(turn_) = false;
  // Of the engine's thread.
  absl::Time sleeps_until_ ABSL_GUARDED_BY(turn_) = absl::InfinitePast();
  absl::Time helped_at_ ABSL_GUARDED_BY(turn_) = absl::InfinitePast();  // last

  std::atomic<bool> somebody_waits_{false};  // since the last round
  std::atomic<bool> world_is_changing_{false};
  std::atomic<bool> leaving_{false};
  std::atomic<bool> aborted_{false};
  absl::Mutex mutex_;
  absl::Status abort_reason_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hvd::worker_runtime::engine

#endif  // WORKER_RUNTIME_ENGINE_ENGINE_LOOP_H_
