#include "base/signal_free_thread.h"

#include <utility>

namespace hvd {

SignalsBlocked::SignalsBlocked() {
  sigset_t all;
  sigfillset(&all);
  // Faults stay unblocked, so that Python's faulthandler can report them.
  for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigdelset(&all, fault);
  pthread_sigmask(SIG_SETMASK, &all, &before_);
}

SignalsBlocked::~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

std::thread StartSignalFreeThread(std::function<void()> body) {
  // A new thread inherits the mask of the thread that creates it.
  const SignalsBlocked blocked;
  return std::thread(std::move(body));
}

}  // namespace hvd
