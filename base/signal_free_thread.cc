#include "base/signal_free_thread.h"

#include <signal.h>

#include <utility>

namespace hvd {

std::thread StartSignalFreeThread(std::function<void()> body) {
  sigset_t all, before;
  sigfillset(&all);
  // Python's faulthandler reports these.
  for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigdelset(&all, fault);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::move(body));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace hvd
