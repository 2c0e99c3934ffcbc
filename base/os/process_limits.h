// Resource limits of this process: files, core files, memory, threads.
#ifndef BASE_OS_PROCESS_LIMITS_H_
#define BASE_OS_PROCESS_LIMITS_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"

namespace hvd::os {

// Lets this process open as many files as its hard limit allows: a large job has more connections
// and pipes than the usual soft limit of 1024. A process from Process::Spawn gets this process's
// original limit, since programs with select() can't use more. REQUIRES: no other thread starts a
// process meanwhile.
void AllowManyFiles();

// Lets this process open `more` files beside those that it has, as far as its hard limit allows;
// child processes inherit the new limit. Does nothing if the limit is large enough. Thread-safe.
void AllowMoreFiles(size_t more);

// Forbids core dumps of this process, whose memory holds keys, whatever the limit says: neither to
// a file nor to a program that collects them. A process from Process::Spawn gets this process's
// original limit. REQUIRES: as AllowManyFiles.
void ForbidCoreFiles();

// For Process, in a forked child: undoes the calls of the functions above. Async-signal-safe.
void RestoreLimits();

// The value for a child's oom_score_adj by which the kernel, when memory runs out, takes the child
// before this process: this process's own value, which somebody may have chosen, and `more` (of
// 1000). Empty: leave it unchanged, since this process is exempt, or its value can't be read.
std::string RaisedOomScore(int more);

// Checks that a program of this project can start its threads; gRPC waits without a limit for
// threads that it does not get. Thread-safe.
// Errors:
//   - ResourceExhausted: it can't; says where the limit may be.
absl::Status CheckThreads();

}  // namespace hvd::os

#endif  // BASE_OS_PROCESS_LIMITS_H_
