// Threads that block all asynchronous signals.
#ifndef BASE_SIGNAL_FREE_THREAD_H_
#define BASE_SIGNAL_FREE_THREAD_H_

#include <signal.h>

#include <functional>
#include <thread>

namespace hvd {

// Starts a thread that blocks all signals except synchronous faults: signals are for the main
// thread, and a user's handler must not run in a thread of this library.
std::thread StartSignalFreeThread(std::function<void()> body);

// RAII: blocks these signals in the calling thread during its life, so that threads which any
// library starts meanwhile inherit the blocked signals.
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
