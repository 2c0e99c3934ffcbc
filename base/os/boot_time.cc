#include "base/os/boot_time.h"

#include <time.h>

namespace hvd::os {
namespace {

absl::Duration Read(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return absl::DurationFromTimespec(time);
}

}  // namespace

BootTime ReadBootTime() {
  // Only the first of these two clocks goes on during suspension.
  const absl::Duration since_boot = Read(CLOCK_BOOTTIME);
  return {since_boot, since_boot - Read(CLOCK_MONOTONIC)};
}

}  // namespace hvd::os
