// The bound on the memory that messages take at a receiver that has not asked for them.
#ifndef COLLECTIVES_MESSAGES_EAGER_CREDIT_H_
#define COLLECTIVES_MESSAGES_EAGER_CREDIT_H_

#include <cstddef>
#include <utility>

namespace hvd::collectives::messages {

// The largest message that is sent before the receiver asks for it.
inline constexpr size_t kEagerBytes = size_t{8} << 10;
// What the messages of one sender that no receive has taken may cost the receiver.
inline constexpr size_t kEagerWindow = size_t{512} << 10;
// The cost of a message.
constexpr size_t EagerCost(size_t bytes) { return bytes + 128; }

// A sender's side. A message for which there is no credit is announced, as a large one is: it waits
// at the sender and holds up no other message. Pure. Not thread-safe.
class EagerCredit {
 public:
  // Whether the message may be sent at once; if so, it has been paid for.
  bool Spend(size_t bytes) {
    if (bytes > kEagerBytes || EagerCost(bytes) > left_) return false;
    left_ -= EagerCost(bytes);
    return true;
  }
  // The receiver has said that it has given out this much. Not more than was spent: a peer that
  // says so must not raise its own bound.
  void Return(size_t cost) { left_ = cost > kEagerWindow - left_ ? kEagerWindow : left_ + cost; }

 private:
  size_t left_ = kEagerWindow;
};

// The receiver's side. Pure. Not thread-safe.
class EagerDebt {
 public:
  // Whether a message that arrives keeps to the bound.
  bool Arrive(size_t bytes) {
    used_ += EagerCost(bytes);
    return bytes <= kEagerBytes && used_ <= kEagerWindow;
  }
  // A receive has taken a message. Returns what the sender must be told to have back, in few steps;
  // 0: nothing yet.
  size_t GiveOut(size_t bytes) {
    given_ += EagerCost(bytes);
    if (given_ < kEagerWindow / 4) return 0;
    used_ -= given_;
    return std::exchange(given_, 0);
  }

 private:
  size_t used_ = 0;   // as the sender counts
  size_t given_ = 0;  // and was not told
};

}  // namespace hvd::collectives::messages

#endif  // COLLECTIVES_MESSAGES_EAGER_CREDIT_H_
