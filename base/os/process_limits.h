// What the system lets a program of ours have.
#ifndef BASE_OS_PROCESS_LIMITS_H_
#define BASE_OS_PROCESS_LIMITS_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"

namespace hvd::os {

// Lets this process open as many files as its hard limit allows: a large job has more connections
// and pipes than the usual soft limit of 1024. What Process::Spawn starts gets the limit back that
// this process came with, since programs with select() can't use more. REQUIRES: no other thread
// starts a process meanwhile.
void AllowManyFiles();

// Lets this process open `more` files beside those that it has, as far as its hard limit allows;
// what it starts inherits that. Does nothing where it can do so anyway. Thread-safe.
void AllowMoreFiles(size_t more);

// Has the kernel write no core file of this process, whose memory holds keys, whatever the limit
// says: neither to a file nor to a program that collects them. What Process::Spawn starts gets the
// limit back that this process came with. REQUIRES: as AllowManyFiles.
void ForbidCoreFiles();

// In a forked child, for Process: undoes what was called of these. Async-signal-safe.
void RestoreLimits();

// What a child is to write to its oom_score_adj so that the kernel, when memory runs out, takes it
// before this process: its own value, which somebody may have chosen, and `more` (of 1000). Empty:
// leave it as it is, since this process is exempt, or that can't be told.
std::string RaisedOomScore(int more);

// Whether the threads that a program of ours needs can be had; gRPC waits forever for those that
// it does not get. Thread-safe.
//   ResourceExhausted: they can't; says where the limit may be.
absl::Status CheckThreads();

}  // namespace hvd::os

#endif  // BASE_OS_PROCESS_LIMITS_H_
