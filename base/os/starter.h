// The watch for the end of the process that started this one.
#ifndef BASE_OS_STARTER_H_
#define BASE_OS_STARTER_H_

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/event_loop.h"
#include "base/os/other_process.h"

namespace hvd::os {

// Detects the end by either sign: the end of the parent process, or of stdin. PR_SET_PDEATHSIG is
// not usable for this: it fires when the parent's thread that has started this process ends, for
// example a thread of a pool. Not thread-safe.
class Starter {
 public:
  struct Signs {
    bool parent = false;
    bool input = false;
  };

  // Opens this process's parent. A child that is forked later can also watch it.
  // Errors:
  //   - FailedPrecondition: the parent has ended or is in another PID namespace, or stdin is not a
  //     pipe or socket.
  static absl::StatusOr<Starter> Find(const Signs& signs);

  // Calls `on_end` from the loop with a description of what has ended, once for each sign,
  // including one that occurred before the call. REQUIRES: no other reader of stdin; the loop ends
  // before this object.
  void Watch(EventLoop& loop, const std::function<void(const std::string&)>& on_end) const;

 private:
  std::optional<OtherProcess> parent_;
  bool has_input_ = false;
};

}  // namespace hvd::os

#endif  // BASE_OS_STARTER_H_
