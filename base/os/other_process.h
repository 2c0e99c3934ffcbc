// A process that is not this one's child, told apart from later ones of the same number.
#ifndef BASE_OS_OTHER_PROCESS_H_
#define BASE_OS_OTHER_PROCESS_H_

#include <sys/types.h>

#include <utility>

#include "absl/status/statusor.h"
#include "base/fd.h"

namespace hvd::os {

// Holds a pidfd. Not thread-safe.
class OtherProcess {
 public:
  //   NotFound: there is no such process, or none that can be seen from here.
  //   ResourceExhausted, other codes of errno: no descriptor to be had.
  static absl::StatusOr<OtherProcess> Open(pid_t pid);

  pid_t pid() const { return pid_; }

  // Whether it has ended, be it reaped or not.
  bool HasEnded() const;

  // Whether it could be sent; 0 sends nothing.
  bool Signal(int signal) const;

 private:
  OtherProcess(pid_t pid, Fd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}

  pid_t pid_;
  Fd pidfd_;
};

}  // namespace hvd::os

#endif  // BASE_OS_OTHER_PROCESS_H_
