// Threads that the program they run in does not notice.
#ifndef BASE_SIGNAL_FREE_THREAD_H_
#define BASE_SIGNAL_FREE_THREAD_H_

#include <functional>
#include <thread>

namespace hvd {

// A thread that takes no signals: they are the main thread's affair, and a handler of the user's
// must not run in ours. Its own faults reach it, since they can't be put off.
std::thread StartSignalFreeThread(std::function<void()> body);

}  // namespace hvd

#endif  // BASE_SIGNAL_FREE_THREAD_H_
