// The machine's uptime and its suspended part, by which a process can detect that it was stopped,
// or that its machine was suspended.
#ifndef BASE_OS_BOOT_TIME_H_
#define BASE_OS_BOOT_TIME_H_

#include "absl/time/time.h"

namespace hvd::os {

struct BootTime {
  absl::Duration since_boot;  // includes times of stopped processes and of suspension
  absl::Duration asleep;      // the part spent suspended; may be off by some microseconds
};

// Reads the real clock. A paused virtual machine does not see the pause. Thread-safe.
BootTime ReadBootTime();

}  // namespace hvd::os

#endif  // BASE_OS_BOOT_TIME_H_
