// An event loop: one thread that waits for descriptors, timers and tasks from other threads, and
// runs their callbacks.
#ifndef BASE_EVENT_LOOP_H_
#define BASE_EVENT_LOOP_H_

#include <sys/epoll.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/fd.h"

namespace hvd {

// Only Post may be called from any thread; everything else belongs to the thread that calls Run.
// Callbacks may call everything. Level-triggered: a handler that leaves data unread is called
// again.
class EventLoop {
 public:
  using Handler = std::function<void(uint32_t events)>;  // EPOLLIN, EPOLLHUP, ...
  using TimerId = std::pair<absl::Time, uint64_t>;

  // Errors:
  //   - ResourceExhausted: too many open files.
  static absl::StatusOr<std::unique_ptr<EventLoop>> Create(Clock& clock = Clock::Real());

  // Calls `handler` when one of `events` is ready on `fd`. `fd` is borrowed; call Forget before it
  // is closed. Without events the descriptor is not watched at all, not even for a hang-up, until
  // Change.
  // Errors:
  //   - PermissionDenied: a kind of descriptor that can't be waited for.
  absl::Status Watch(int fd, uint32_t events, Handler handler);
  // REQUIRES: `fd` is watched.
  void Change(int fd, uint32_t events);
  // The handler of `fd` is not called any more, not even for events already seen. Harmless if `fd`
  // is not watched.
  void Forget(int fd);

  TimerId After(absl::Duration delay, std::function<void()> task);
  // Harmless if it has fired.
  void Cancel(TimerId timer) { timers_.erase(timer); }

  // The loop's thread runs `task`, in the order of posting. Tasks posted after the loop has stopped
  // are dropped with it.
  void Post(std::function<void()> task) ABSL_LOCKS_EXCLUDED(mutex_);

  // Runs until Stop() is called by a callback.
  void Run();
  void Stop() { stopped_ = true; }

 private:
  struct Watched {
    int fd;
    uint32_t events;
    Handler handler;
  };

  EventLoop(Clock& clock, Fd epoll, Fd wake);
  int MillisecondsToWait();
  void RunTimers();
  void RunTasks() ABSL_LOCKS_EXCLUDED(mutex_);
  void Dispatch(uint64_t token, uint32_t events);
  absl::Status Control(int operation, uint64_t token, const Watched& watched);

  Clock& clock_;
  Fd epoll_;
  Fd wake_;
  bool stopped_ = false;
  uint64_t next_id_ = 1;
  // Keyed by a number that is never used again, so that an event of a closed descriptor can't reach
  // its successor.
  std::map<uint64_t, std::shared_ptr<Watched>> watched_;
  std::map<int, uint64_t> token_by_fd_;
  std::map<TimerId, std::function<void()>> timers_;
  absl::Mutex mutex_;
  std::vector<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hvd

#endif  // BASE_EVENT_LOOP_H_
