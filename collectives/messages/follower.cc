#include "collectives/messages/follower.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

namespace hvd::collectives::messages {

void Follower::Wake() {
  woken_.store(1, std::memory_order_release);
  syscall(SYS_futex, &woken_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

// The kernel lets the thread sleep only while the word is 0, so no Wake is lost.
bool Follower::Await(absl::Duration timeout) {
  static_assert(sizeof(woken_) == sizeof(uint32_t));
  if (timeout > absl::ZeroDuration()) {
    const timespec relative = absl::ToTimespec(timeout);
    syscall(SYS_futex, &woken_, FUTEX_WAIT_PRIVATE, 0, &relative, nullptr, 0);
  }
  return woken_.load(std::memory_order_acquire) != 0;
}

}  // namespace hvd::collectives::messages
