// Child-subreaper helpers: list, adopt, kill and reap descendants.
#ifndef BASE_OS_PROCESS_TREE_H_
#define BASE_OS_PROCESS_TREE_H_

#include <sys/types.h>

#include <vector>

#include "absl/status/statusor.h"

namespace hvd::os {

// Returns the processes whose parent is `parent`, zombies included.
std::vector<pid_t> ChildrenOf(pid_t parent);

// Makes this process the subreaper: all its orphaned descendants become its children, whatever
// sessions they have made for themselves.
void BecomeSubreaper();

// Whether `ancestor` is an ancestor of `pid`. A subreaper is an ancestor of all processes that its
// descendants have started.
// Errors:
//   - ResourceExhausted: no file descriptor is left to find out; the message names the limit.
absl::StatusOr<bool> DescendsFrom(pid_t pid, pid_t ancestor);

// Whether /proc shows this process's own PID namespace.
bool ProcIsOurs();

// Kills (SIGKILL) and reaps all children until none is left. In a subreaper these are all
// descendants, since an orphan becomes its child. Waits until the kernel has ended the last one.
void KillDescendants();

}  // namespace hvd::os

#endif  // BASE_OS_PROCESS_TREE_H_
