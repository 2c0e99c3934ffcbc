// The state and the signal handlers of a process, from /proc.
#ifndef AGENT_INSPECTION_PROCESS_STATE_H_
#define AGENT_INSPECTION_PROCESS_STATE_H_

#include <sys/types.h>

#include <optional>
#include <vector>

#include "base/os/process.h"

namespace hvd::agent::inspection {

// The state letter of /proc: 'R' runs, 'S' sleeps, 'D' sleeps and can't be interrupted, 'T' was
// stopped by a signal, 't' by a debugger, 'Z' has ended; 0: there is no such process.
char StateOf(pid_t pid);

// Whether a signal (SIGSTOP, SIGTSTP, ...) has stopped the process. False for a debugger's stop,
// and if there is no such process.
bool IsStopped(pid_t pid);

// Whether the process has begun to end, frees its memory or writes its core file: it runs no code
// of a program any more.
bool IsExiting(pid_t pid);

// Whether the process has a handler for the signal.
bool Catches(pid_t pid, int signal);

// The processes that a signal to `root` is meant for: `root` itself if it has a handler for it,
// else those of its children that have one, and so on. So a shell around a script does not end by a
// signal that the script waits for, and processes that the script has forked do not get it twice.
std::vector<pid_t> CatchersOf(pid_t root, int signal);

// The exit status of a zombie, which its parent has not reaped yet; nullopt: the process runs, or
// does not exist.
std::optional<os::ExitStatus> EndOf(pid_t pid);

}  // namespace hvd::agent::inspection

#endif  // AGENT_INSPECTION_PROCESS_STATE_H_
