// What the system lets a program of ours have.
#ifndef BASE_PROCESS_LIMITS_H_
#define BASE_PROCESS_LIMITS_H_

#include "absl/status/status.h"

namespace hvd {

// Lets this process open as many files as its hard limit allows: a large job has more connections
// and pipes than the usual soft limit of 1024. What Process::Spawn starts gets the limit back that
// this process came with, since programs with select() can't use more. REQUIRES: no other thread
// starts a process meanwhile.
void AllowManyFiles();

// In a forked child, for Process: undoes AllowManyFiles, if it was called. Async-signal-safe.
void RestoreFileLimit();

// Whether the threads that a program of ours needs can be had; gRPC waits forever for those that
// it does not get. Thread-safe.
//   ResourceExhausted: they can't; says where the limit may be.
absl::Status CheckThreads();

}  // namespace hvd

#endif  // BASE_PROCESS_LIMITS_H_
