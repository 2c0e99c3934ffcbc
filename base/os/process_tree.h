// The descendants of this process, for those (subreapers) to whom orphans come.
#ifndef BASE_OS_PROCESS_TREE_H_
#define BASE_OS_PROCESS_TREE_H_

#include <sys/types.h>

#include <vector>

namespace hvd::os {

// The processes whose parent is `parent`, zombies included.
std::vector<pid_t> ChildrenOf(pid_t parent);

// Makes this process the one to which all its orphaned descendants are given, whatever sessions
// they have made for themselves.
void BecomeSubreaper();

// Whether `ancestor` is above `pid`. A subreaper is above all that its descendants have ever
// started.
bool DescendsFrom(pid_t pid, pid_t ancestor);

// Whether the numbers in /proc are those of this process's namespace.
bool ProcIsOurs();

// Kills (SIGKILL) and reaps every child until there is none left. In a subreaper these are all
// descendants: whoever loses its parent comes here. Waits until the kernel has ended the last one.
void KillDescendants();

}  // namespace hvd::os

#endif  // BASE_OS_PROCESS_TREE_H_
