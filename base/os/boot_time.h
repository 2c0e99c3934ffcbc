// How long this machine has run and slept: a process that was stopped, or whose machine was
// suspended, can tell by it that time has passed.
#ifndef BASE_OS_BOOT_TIME_H_
#define BASE_OS_BOOT_TIME_H_

#include "absl/time/time.h"

namespace hvd::os {

struct BootTime {
  absl::Duration since_boot;  // goes on while processes are stopped and while the machine sleeps
  absl::Duration asleep;      // of it, suspended; may be off by some microseconds
};

// Of the real clock. A paused virtual machine does not see the pause. Thread-safe.
BootTime ReadBootTime();

}  // namespace hvd::os

#endif  // BASE_OS_BOOT_TIME_H_
