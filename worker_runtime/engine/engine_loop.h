// The engine's main loop: announces new operations, receives plans and executes them.
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

// The status of all operations in flight once `rank` has left cleanly.
absl::Status LeftWorldError(int rank);

// Run() belongs to one thread; the other methods are thread-safe. The references given to the
// constructor must outlive Run().
//
// One thread at a time runs rounds (it "has the turn"): the engine's own thread, or, where the
// control channel is shared memory or the world has one rank, a user thread that waits for an
// operation. The latter saves two wake-ups, which take longer than a small operation does.
class EngineLoop {
 public:
  EngineLoop(const EngineOptions& options, collectives::Communicator& communicator,
             std::unique_ptr<control::ControlChannel> control, TensorQueue& queue,
             BlockedWaits& blocked);

  // Runs rounds until the epoch has ended, then fails the operations in flight and closes the
  // queue.
  void Run();

  // Called by a thread that waits for `done`. Queued operations are announced without further
  // delay. If the control channel allows it and no other thread is running rounds, the caller runs
  // them until `done` is set or nothing has arrived for some microseconds.
  void Help(const Completion& done);

  // Has the queued operations announced without further delay.
  void Hurry();

  // Called by a thread that no longer waits for an operation in flight. Rank 0 is told at once.
  void GiveUpWait();

  // Wakes the engine's thread, which must look at the queue and the blocked waits again.
  void Wake() { control_->Wake(); }
  // See Engine::OrderTimeline.
  void OrderTimeline(negotiation::TimelineOrder order, std::shared_ptr<timeline::TraceFile> file);
  // See Engine::SetWorldChanging.
  void SetWorldChanging();
  // Ends the epoch cleanly, for all ranks.
  void Leave();
  // Ends the epoch at once. The first call's reason is kept.
  void Abort(const absl::Status& reason);

 private:
  // Runs one round without waiting for messages. An error ends the epoch.
  absl::Status RunCycle();
  // Runs a round on the engine's thread; returns how long the thread may sleep afterwards.
  absl::Duration TakeTurn();
  // Leaves further rounds to the engine's thread, and wakes it if it would sleep for too long.
  void HandOver() ABSL_EXCLUSIVE_LOCKS_REQUIRED(turn_);
  void End(absl::Status status);
  absl::Status CheckOrders();
  absl::Status AnnounceNew();
  absl::Status FillInbox(absl::Duration timeout);
  absl::Status HandleInbox();
  absl::Status HandleAnnouncement(const control::ControlChannel::Message& message);
  absl::Status RunNextPlan();

  absl::Duration ReceiveTimeout() const;
  // Returns whether the announcement has to be sent.
  bool FillAnnouncement(negotiation::Announcement& announcement);
  absl::Status Announce(negotiation::Announcement announcement);
  // Sends the plan to all members, also after an error; returns the first error.
  absl::Status SendPlan(const negotiation::Plan& plan);
  absl::Status CarryOut(const negotiation::Plan& plan);
  absl::Status RunBatch(const negotiation::Batch& batch);
  absl::Status ReportStall();
  // Keeps the tensors of a failed collective, which fail with all others once the cause is known.
  void NoteBroken(const Executor::Parts& parts);
  void RecordPlanned(const OperationTensor& tensor);
  // Rank 0: passes a rank's announcement to the coordinator.
  absl::Status Heard(int rank, negotiation::Announcement announcement);
  void Deliver(const negotiation::Failure& failure);

  // The methods from here to FindCause run at the end of the epoch (engine_end.cc).
  // Notifies the other ranks unless they know already. Returns why the epoch ended: the cause,
  // where it can be found out, rather than this rank's own error.
  absl::Status Conclude(absl::Status status);
  bool HasLeft() const;
  // Returns `status` with options_.ranks_note appended, unless it contains the note already.
  absl::Status WithRanksNote(const absl::Status& status) const;
  // Sends the timeline events not sent yet, and takes those that have arrived.
  void SendLastEvents();
  void TakeLastEvents(const control::ControlChannel::Message& message);
  void ReportToMembers(const absl::Status& status);
  void ReportToRoot(const absl::Status& status);
  // The error of a collective is often a consequence of another rank's failure, which the control
  // channel reports. Waits for such a report for a short time; returns `own` if none comes.
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
  std::vector<OperationTensor> broken_;                 // the tensors of the failed collective
  std::optional<negotiation::EpochEnd> end_;            // from the last plan
  std::optional<int> unreached_;                        // the rank that the network does not reach

  // Held by the thread that runs a round; guards all non-const members above.
  absl::Mutex turn_;
  // The error of a round, on whatever thread; the engine's thread then ends the epoch.
  absl::Status failed_ ABSL_GUARDED_BY(turn_);
  bool has_ended_ ABSL_GUARDED_BY(turn_) = false;
  // When the engine's thread will run its next round, if nothing wakes it.
  absl::Time sleeps_until_ ABSL_GUARDED_BY(turn_) = absl::InfinitePast();
  // When another thread last ran rounds.
  absl::Time helped_at_ ABSL_GUARDED_BY(turn_) = absl::InfinitePast();

  std::atomic<bool> somebody_waits_{false};  // since the last round
  std::atomic<bool> wait_given_up_{false};   // since the last round
  std::atomic<bool> world_is_changing_{false};
  std::atomic<bool> leaving_{false};
  std::atomic<bool> aborted_{false};
  absl::Mutex mutex_;
  absl::Status abort_reason_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hvd::worker_runtime::engine

#endif  // WORKER_RUNTIME_ENGINE_ENGINE_LOOP_H_
