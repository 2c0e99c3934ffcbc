// What the kernel says that a process is doing.
#ifndef LAUNCHER_AGENT_PROCESS_STATE_H_
#define LAUNCHER_AGENT_PROCESS_STATE_H_

#include <sys/types.h>

namespace hvd {

// Whether a signal (SIGSTOP, SIGTSTP, ...) has stopped the process. A debugger's stop does not
// count, nor does a process that there is not.
bool IsStopped(pid_t pid);

}  // namespace hvd

#endif  // LAUNCHER_AGENT_PROCESS_STATE_H_
