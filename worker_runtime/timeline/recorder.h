// The recorder of a rank's timeline events.
#ifndef WORKER_RUNTIME_TIMELINE_RECORDER_H_
#define WORKER_RUNTIME_TIMELINE_RECORDER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "worker_runtime/timeline/event.h"

namespace hvd::worker_runtime::timeline {

// Thread-safe; all engines of a rank share one. While it is off, recording an event costs one load.
// While it is on, events are kept until they are taken. Events beyond kMostEvents are dropped and
// counted.
class Recorder {
 public:
  static constexpr size_t kMostEvents = 1 << 16;
  // Events are due, to be taken and sent to rank 0, when there are this many or the oldest one is
  // this old. On rank 0, which writes the file, they need not be sent, so a user who reads the file
  // while the job runs sees them earlier.
  static constexpr size_t kManyEvents = 1 << 10;
  static constexpr absl::Duration kOld = absl::Seconds(1);
  static constexpr absl::Duration kOldAtTheWriter = absl::Milliseconds(30);

  explicit Recorder(Clock& clock = Clock::Real()) : clock_(clock) {}

  bool on() const { return on_.load(std::memory_order_relaxed); }
  // Starts recording, without earlier events. `offset` is encoded with the events. Events of age
  // `old` are due.
  void Start(const ClockOffset& offset, bool mark_cycles, absl::Duration old = kOld);
  // Stops recording. Events recorded so far can still be taken.
  void Stop();

  // Identifies a submitted request until it runs.
  struct Submission {
    absl::Time time;
    uint64_t first_id = 0;  // the id of its first tensor, the others follow; 0: it was off
  };
  // Records that a request of these tensors is submitted.
  Submission Queued(int process_set, absl::Span<const negotiation::SignaturePtr> tensors);
  // Records that tensor number `index` of a request is about to run. If the recorder was started
  // after the submission, also records the submission.
  void Planned(int process_set, const Submission& submission, size_t index,
               const negotiation::SignaturePtr& tensor);
  // Records that the engine begins another round.
  void Cycle(int process_set);

  // Returns the begin of an operation or activity, to be passed to Operation or Activity at its
  // end: now, or InfinitePast while the recorder is off, in which case nothing is recorded.
  absl::Time Begin() const { return on() ? clock_.Now() : absl::InfinitePast(); }
  void Operation(int process_set, absl::Time began, std::vector<negotiation::SignaturePtr> tensors);
  void Activity(int process_set, absl::Time began, std::string name);

  // Returns when the oldest events are due; InfiniteFuture: there are none.
  absl::Time NextDue() const;
  // Whether there is anything to take.
  bool IsEmpty() const;
  // Removes the oldest events and returns them as a chunk.
  std::string Take();

 private:
  void Add(TimelineEvent event);
  void AddLocked(TimelineEvent event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Clock& clock_;
  std::atomic<bool> on_{false};
  std::atomic<bool> mark_cycles_{false};
  mutable absl::Mutex mutex_;
  ClockOffset offset_ ABSL_GUARDED_BY(mutex_);
  std::deque<TimelineEvent> events_ ABSL_GUARDED_BY(mutex_);
  absl::Time started_ ABSL_GUARDED_BY(mutex_);
  absl::Duration old_ ABSL_GUARDED_BY(mutex_) = kOld;
  uint64_t first_id_ ABSL_GUARDED_BY(mutex_) = 1;  // the first id since started_
  uint64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
};

// RAII: records one activity named `prefix + name` for its lifetime. Both must outlive it.
class ActivityScope {
 public:
  ActivityScope(Recorder& recorder, int process_set, absl::string_view prefix,
                absl::string_view name)
      : recorder_(recorder),
        process_set_(process_set),
        prefix_(prefix),
        name_(name),
        began_(recorder.Begin()) {}
  ~ActivityScope() {
    if (began_ == absl::InfinitePast()) return;
    recorder_.Activity(process_set_, began_, absl::StrCat(prefix_, name_));
  }
  ActivityScope(const ActivityScope&) = delete;
  ActivityScope& operator=(const ActivityScope&) = delete;

 private:
  Recorder& recorder_;
  const int process_set_;
  const absl::string_view prefix_;
  const absl::string_view name_;
  const absl::Time began_;
};

}  // namespace hvd::worker_runtime::timeline

#endif  // WORKER_RUNTIME_TIMELINE_RECORDER_H_
