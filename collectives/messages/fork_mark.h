// The recognition of a forked child.
#ifndef COLLECTIVES_MESSAGES_FORK_MARK_H_
#define COLLECTIVES_MESSAGES_FORK_MARK_H_

#include <sys/types.h>

#include <atomic>

namespace hvd::collectives::messages {

// Tells the process that has made it from its forked children, at the cost of a load: the kernel
// wipes the page of the mark in a child. Thread-safe.
class ForkMark {
 public:
  ForkMark();
  ~ForkMark();
  ForkMark(const ForkMark&) = delete;
  ForkMark& operator=(const ForkMark&) = delete;

  bool IsOwnProcess() const;

 private:
  const pid_t process_;
  std::atomic<bool>* mark_ = nullptr;  // nullptr: the kernel can't wipe pages
};

}  // namespace hvd::collectives::messages

#endif  // COLLECTIVES_MESSAGES_FORK_MARK_H_
