// A single-threaded event loop (epoll) for descriptors, timers and tasks from other threads.
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

// Thread-safety: Post may be called from any thread; all other methods belong to the thread that
// calls Run. Callbacks may call every method. Level-triggered: a handler that leaves data unread is
// called again.
class EventLoop {
 public:
  using Handler = std::function<void(uint32_t events)>;  // EPOLLIN, EPOLLHUP, ...
  using TimerId = std::pair<absl::Time, uint64_t>;

  // Errors:
  //   - ResourceExhausted: too many open files.
  static absl::StatusOr<std::unique_ptr<EventLoop>> Create(Clock& clock = Clock::Real());

  // Calls `handler` when one of `events` is ready on `fd`. `fd` is borrowed; call Forget before it
  // is closed. With `events` 0 the descriptor is not watched until Change, not even for a hang-up.
  // Errors:
  //   - PermissionDenied: epoll does not support this kind of descriptor, e.g. a regular file.
  absl::Status Watch(int fd, uint32_t events, Handler handler);
  // REQUIRES: `fd` is watched.
  void Change(int fd, uint32_t events);
  // Stops watching `fd`. Its handler is not called any more, not even for pending events. Has no
  // effect if `fd` is not watched.
  void Forget(int fd);

  TimerId After(absl::Duration delay, std::function<void()> task);
  // Has no effect if the timer has fired.
  void Cancel(TimerId timer) { timers_.erase(timer); }

  // Runs `task` on the loop's thread, in the order of posting. Tasks that are posted after the loop
  // has stopped are dropped.
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
  // Keyed by a number that is never reused, so that a pending event of a closed descriptor can't
  // reach the handler of a new descriptor with the same number.
  std::map<uint64_t, std::shared_ptr<Watched>> watched_;
  std::map<int, uint64_t> token_by_fd_;
  std::map<TimerId, std::function<void()>> timers_;
  absl::Mutex mutex_;
  std::vector<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hvd

#endif  // BASE_EVENT_LOOP_H_
