#include "base/cancellation.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

namespace hvd {

Cancellation::Cancellation() : event_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

void Cancellation::Cancel(const absl::Status& why) {
  {
    absl::MutexLock lock(&mutex_);
    status_.Update(why);
  }
  const uint64_t once = 1;
  // The status is set before the descriptor becomes readable, so a woken waiter finds the reason.
  // The write can fail only if the counter is full, and then the descriptor is readable anyway.
  [[maybe_unused]] const ssize_t written = write(event_.get(), &once, sizeof(once));
}

absl::Status Cancellation::status() const {
  absl::MutexLock lock(&mutex_);
  return status_;
}

}  // namespace hvd
