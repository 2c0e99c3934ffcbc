#include "base/event_loop.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "base/status_macros.h"

namespace hvd {
namespace {

constexpr uint64_t kWakeToken = 0;
constexpr int kMaxEvents = 64;

}  // namespace

absl::StatusOr<std::unique_ptr<EventLoop>> EventLoop::Create(Clock& clock) {
  Fd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return absl::ErrnoToStatus(errno, "can't make an event loop");
  Fd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return absl::ErrnoToStatus(errno, "can't make an event loop");
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.u64 = kWakeToken;
  if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, wake.get(), &event) != 0) {
    return absl::ErrnoToStatus(errno, "can't make an event loop");
  }
  return std::unique_ptr<EventLoop>(new EventLoop(clock, std::move(epoll), std::move(wake)));
}

EventLoop::EventLoop(Clock& clock, Fd epoll, Fd wake)
    : clock_(clock), epoll_(std::move(epoll)), wake_(std::move(wake)) {}

absl::Status EventLoop::Control(int operation, uint64_t token, const Watched& watched) {
  epoll_event event = {};
  event.events = watched.events;
  event.data.u64 = token;
  if (epoll_ctl(epoll_.get(), operation, watched.fd, &event) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, "can't wait for a descriptor");
}

absl::Status EventLoop::Watch(int fd, uint32_t events, Handler handler) {
  const uint64_t token = next_id_++;
  auto watched = std::make_shared<Watched>(Watched{fd, events, std::move(handler)});
  if (events != 0) RETURN_IF_ERROR(Control(EPOLL_CTL_ADD, token, *watched));
  watched_.emplace(token, std::move(watched));
  token_by_fd_[fd] = token;
  return absl::OkStatus();
}

void EventLoop::Change(int fd, uint32_t events) {
  const uint64_t token = token_by_fd_.at(fd);
  Watched& watched = *watched_.at(token);
  const uint32_t before = std::exchange(watched.events, events);
  if (before == events) return;
  // Without events the descriptor is removed from epoll, which would report hang-ups even then.
  const int operation = before == 0 ? EPOLL_CTL_ADD : events == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
  (void)Control(operation, token, watched);
}

void EventLoop::Forget(int fd) {
  const auto entry = token_by_fd_.find(fd);
  if (entry == token_by_fd_.end()) return;
  const auto watched = watched_.find(entry->second);
  if (watched->second->events != 0) {
    (void)Control(EPOLL_CTL_DEL, entry->second, *watched->second);
  }
  watched_.erase(watched);
  token_by_fd_.erase(entry);
}

EventLoop::TimerId EventLoop::After(absl::Duration delay, std::function<void()> task) {
  const TimerId timer(clock_.Now() + delay, next_id_++);
  timers_.emplace(timer, std::move(task));
  return timer;
}

void EventLoop::Post(std::function<void()> task) {
  {
    absl::MutexLock lock(&mutex_);
    tasks_.push_back(std::move(task));
  }
  eventfd_write(wake_.get(), 1);
}

int EventLoop::MillisecondsToWait() {
  if (timers_.empty()) return -1;
  // Rounded up: an early wake-up would only lead to another wait.
  const int64_t wait = absl::ToInt64Milliseconds(
      absl::Ceil(timers_.begin()->first.first - clock_.Now(), absl::Milliseconds(1)));
  return static_cast<int>(std::clamp<int64_t>(wait, 0, std::numeric_limits<int>::max()));
}

void EventLoop::RunTimers() {
  // `now` is read once, so that timers which are set by these tasks wait for the next iteration,
  // and descriptors are not starved. A timer is removed before its task runs, since the task may
  // cancel or add timers.
  const absl::Time now = clock_.Now();
  while (!stopped_ && !timers_.empty() && timers_.begin()->first.first <= now) {
    const std::function<void()> task = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
    task();
  }
}

void EventLoop::RunTasks() {
  // The eventfd is reset before the tasks are taken: a task that is posted in between makes it
  // readable again, so that no task is left behind. Tasks run without the lock, since they may
  // post.
  eventfd_t count;
  eventfd_read(wake_.get(), &count);
  std::vector<std::function<void()>> tasks;
  {
    absl::MutexLock lock(&mutex_);
    tasks.swap(tasks_);
  }
  for (const std::function<void()>& task : tasks) {
    if (!stopped_) task();
  }
}

void EventLoop::Dispatch(uint64_t token, uint32_t events) {
  if (token == kWakeToken) return RunTasks();
  const auto entry = watched_.find(token);
  if (entry == watched_.end()) return;  // an earlier handler of this round has called Forget
  // A reference keeps the handler alive while it runs, even if it calls Forget.
  const std::shared_ptr<Watched> watched = entry->second;
  watched->handler(events);
}

void EventLoop::Run() {
  stopped_ = false;
  while (!stopped_) {
    epoll_event events[kMaxEvents];
    const int count = epoll_wait(epoll_.get(), events, kMaxEvents, MillisecondsToWait());
    for (int i = 0; i < count && !stopped_; ++i) Dispatch(events[i].data.u64, events[i].events);
    RunTimers();
  }
}

}  // namespace hvd
