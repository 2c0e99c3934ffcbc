// A thread that sleeps until another one has work or news for it.
#ifndef COLLECTIVES_MESSAGES_FOLLOWER_H_
#define COLLECTIVES_MESSAGES_FOLLOWER_H_

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"

namespace hvd::collectives::messages {

// Made and awaited by one thread; woken by any, once or more often.
class Follower {
 public:
  void Wake();
  // Sleeps until woken, or until `timeout`, or until a signal. Returns whether it was woken.
  bool Await(absl::Duration timeout);

 private:
  std::atomic<uint32_t> woken_{0};  // the futex word
};

}  // namespace hvd::collectives::messages

#endif  // COLLECTIVES_MESSAGES_FOLLOWER_H_
