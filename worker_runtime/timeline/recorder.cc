#include "worker_runtime/timeline/recorder.h"

#include <algorithm>
#include <utility>

#include "worker_runtime/timeline/chunk.h"

namespace hvd::worker_runtime::timeline {

void Recorder::Start(const ClockOffset& offset, bool mark_cycles, absl::Duration old) {
  absl::MutexLock lock(&mutex_);
  old_ = old;
  events_.clear();
  dropped_ = 0;
  offset_ = offset;
  started_ = clock_.Now();
  first_id_ = last_id_ + 1;
  // Last. Recording takes the lock, so an event that sees on_ also sees the state above.
  mark_cycles_.store(mark_cycles, std::memory_order_relaxed);
  on_.store(true, std::memory_order_relaxed);
}

// Relaxed: on_ orders nothing. It is a hint that saves the lock while the recorder is off, and
// AddLocked checks it again. An event that races with Stop may be kept or dropped.
void Recorder::Stop() { on_.store(false, std::memory_order_relaxed); }

// Memory is bounded: what finds no room is counted, and the trace shows the number.
void Recorder::AddLocked(TimelineEvent event) {
  if (!on()) return;  // stopped since the caller's check
  if (events_.size() < kMostEvents) {
    events_.push_back(std::move(event));
  } else {
    ++dropped_;
  }
}

void Recorder::Add(TimelineEvent event) {
  absl::MutexLock lock(&mutex_);
  AddLocked(std::move(event));
}

Recorder::Submission Recorder::Queued(int process_set,
                                      absl::Span<const negotiation::SignaturePtr> tensors) {
  Submission submission{clock_.Now(), 0};
  if (!on()) return submission;
  TimelineEvent event;
  event.kind = EventKind::kQueued;
  event.process_set = process_set;
  event.begin = submission.time;
  absl::MutexLock lock(&mutex_);
  submission.first_id = last_id_ + 1;
  for (const negotiation::SignaturePtr& tensor : tensors) {
    event.id = ++last_id_;
    event.tensors = {tensor};
    AddLocked(event);
  }
  return submission;
}

void Recorder::Planned(int process_set, const Submission& submission, size_t index,
                       const negotiation::SignaturePtr& tensor) {
  if (!on()) return;
  TimelineEvent event;
  event.process_set = process_set;
  event.tensors = {tensor};
  absl::MutexLock lock(&mutex_);
  event.id = submission.first_id + index;
  // The submission was not recorded, or for an earlier file: without it a viewer would see the end
  // of a wait that never began.
  if (submission.first_id < first_id_) {
    event.kind = EventKind::kQueued;
    event.begin = std::max(submission.time, started_);
    event.id = ++last_id_;
    AddLocked(event);
  }
  event.kind = EventKind::kPlanned;
  event.begin = clock_.Now();
  AddLocked(std::move(event));
}

void Recorder::Cycle(int process_set) {
  if (!on() || !mark_cycles_.load(std::memory_order_relaxed)) return;
  TimelineEvent event;
  event.kind = EventKind::kCycle;
  event.process_set = process_set;
  event.begin = clock_.Now();
  Add(std::move(event));
}

void Recorder::Operation(int process_set, absl::Time began,
                         std::vector<negotiation::SignaturePtr> tensors) {
  if (began == absl::InfinitePast() || !on()) return;
  TimelineEvent event;
  event.kind = EventKind::kOperation;
  event.process_set = process_set;
  event.begin = began;
  event.duration = clock_.Now() - began;
  event.tensors = std::move(tensors);
  Add(std::move(event));
}

void Recorder::Activity(int process_set, absl::Time began, std::string name) {
  if (began == absl::InfinitePast() || !on()) return;
  TimelineEvent event;
  event.kind = EventKind::kActivity;
  event.process_set = process_set;
  event.begin = began;
  event.duration = clock_.Now() - began;
  event.activity = std::move(name);
  Add(std::move(event));
}

absl::Time Recorder::NextDue() const {
  absl::MutexLock lock(&mutex_);
  if (events_.empty()) return absl::InfiniteFuture();
  // Begins are only roughly in order, since an operation is added at its end; that is good enough.
  const absl::Time oldest = events_.front().begin;
  return events_.size() >= kManyEvents ? oldest : oldest + old_;
}

bool Recorder::IsEmpty() const {
  absl::MutexLock lock(&mutex_);
  return events_.empty() && dropped_ == 0;
}

std::string Recorder::Take() {
  absl::MutexLock lock(&mutex_);
  return EncodeChunk(events_, offset_, std::exchange(dropped_, 0));
}

}  // namespace hvd::worker_runtime::timeline
