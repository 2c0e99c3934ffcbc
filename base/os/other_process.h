// A handle (pidfd) of any process, which stays valid when the process's number is reused.
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
  // Errors:
  //   - NotFound: there is no such process in this PID namespace.
  //   - ResourceExhausted, other codes of errno: no descriptor available.
  static absl::StatusOr<OtherProcess> Open(pid_t pid);

  pid_t pid() const { return pid_; }

  // Whether the process has ended, reaped or not.
  bool HasEnded() const;

  // A descriptor for poll, readable once the process has ended. Borrowed.
  int fd() const { return pidfd_.get(); }

  // Returns whether the signal could be sent; signal 0 sends nothing.
  bool Signal(int signal) const;

 private:
  OtherProcess(pid_t pid, Fd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}

  pid_t pid_;
  Fd pidfd_;
};

}  // namespace hvd::os

#endif  // BASE_OS_OTHER_PROCESS_H_
