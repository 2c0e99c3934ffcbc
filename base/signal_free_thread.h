// Threads with all asynchronous signals blocked.
#ifndef BASE_SIGNAL_FREE_THREAD_H_
#define BASE_SIGNAL_FREE_THREAD_H_

#include <signal.h>

#include <functional>
#include <thread>

namespace hvd {

// Starts a thread that takes no signals: these are for the main thread, and a handler of the user's
// must not run in a thread of this library. The thread's own faults are not blocked.
std::thread StartSignalFreeThread(std::function<void()> body);

// Blocks these signals in the calling thread as long as it lives: threads that are started
// meanwhile, by whatever library, take none.
class SignalsBlocked {
 public:
  SignalsBlocked();
  ~SignalsBlocked();
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace hvd

#endif  // BASE_SIGNAL_FREE_THREAD_H_
