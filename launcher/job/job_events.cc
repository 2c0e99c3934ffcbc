#include "launcher/job/job_events.h"

#include <utility>

#include "base/os/signals.h"

namespace hvd::launcher::job {

JobEvent EventOf(int signal) {
  if (os::IsNotice(signal)) return NoticeSignal{signal};
  return StopSignal{signal};
}

void JobEventQueue::Post(JobEvent event) {
  absl::MutexLock lock(&mutex_);
  events_.push_back(std::move(event));
}

std::optional<JobEvent> JobEventQueue::Next(absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  const absl::Condition has_event(
      +[](std::deque<JobEvent>* events) { return !events->empty(); }, &events_);
  if (!clock_.AwaitWithDeadline(mutex_, has_event, deadline)) return std::nullopt;
  JobEvent event = std::move(events_.front());
  events_.pop_front();
  return event;
}

}  // namespace hvd::launcher::job
