// The process that started this one, whose end is watched.
#ifndef BASE_OS_STARTER_H_
#define BASE_OS_STARTER_H_

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/event_loop.h"
#include "base/os/other_process.h"

namespace hvd::os {

// The signs of its end: that of the parent process, and that of stdin. The kernel's own
// PR_SET_PDEATHSIG would not do: it counts the end of the thread that has started a process, such
// as one of a pool, as the parent's. Not thread-safe.
class Starter {
 public:
  struct Signs {
    bool parent = false;
    bool input = false;
  };

  // Takes hold of this process's parent; a child that is forked later can watch it.
  // Errors:
  //   - FailedPrecondition: the parent has ended or can't be seen; stdin is no pipe or socket.
  static absl::StatusOr<Starter> Find(const Signs& signs);

  // Has `on_end` called from the loop, with what has ended, for each sign that is seen; also for
  // one from before. REQUIRES: the loop has stdin to itself, and ends before this.
  void Watch(EventLoop& loop, const std::function<void(const std::string&)>& on_end) const;

 private:
  std::optional<OtherProcess> parent_;
  bool has_input_ = false;
};

}  // namespace hvd::os

#endif  // BASE_OS_STARTER_H_
