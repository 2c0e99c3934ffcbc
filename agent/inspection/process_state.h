// What the kernel says that a process is doing.
#ifndef AGENT_INSPECTION_PROCESS_STATE_H_
#define AGENT_INSPECTION_PROCESS_STATE_H_

#include <sys/types.h>

namespace hvd::agent::inspection {

// As in /proc: 'R' runs, 'S' sleeps, 'D' sleeps and can't be interrupted, 'T' was stopped by a
// signal, 't' by a debugger, 'Z' has ended; 0: there is no such process.
char StateOf(pid_t pid);

// Whether a signal (SIGSTOP, SIGTSTP, ...) has stopped the process. A debugger's stop does not
// count, nor does a process that there is not.
bool IsStopped(pid_t pid);

// Whether the process has a handler for the signal.
bool Catches(pid_t pid, int signal);

}  // namespace hvd::agent::inspection

#endif  // AGENT_INSPECTION_PROCESS_STATE_H_
