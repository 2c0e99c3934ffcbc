// The resource limits of this process: open files, core files, OOM score, threads, memory.
#ifndef BASE_OS_PROCESS_LIMITS_H_
#define BASE_OS_PROCESS_LIMITS_H_

#include <cstddef>
#include <exception>
#include <string>

#include "absl/status/status.h"

namespace hvd::os {

// Raises the soft limit of open files to the hard limit: a large job has more connections and pipes
// than the usual soft limit of 1024. A process from Process::Spawn gets the original soft limit,
// since select() does not work with larger descriptors. REQUIRES: no other thread starts a process
// during the call.
void AllowManyFiles();

// Raises the soft limit of open files so that this process can open `more` files, as far as the
// hard limit allows; child processes inherit the new limit. Does nothing if the limit is
// sufficient. Returns how many it can open now. Thread-safe.
size_t AllowMoreFiles(size_t more);

// The soft limit of open files, or 0 if it can't be read.
size_t OpenFilesLimit();

// Disables core dumps of this process, whose memory contains keys, both to files and to a core dump
// handler. A process from Process::Spawn gets the original limit. REQUIRES: as AllowManyFiles.
void ForbidCoreFiles();

// For Process, in a forked child: restores the limits that AllowManyFiles and ForbidCoreFiles have
// changed. Async-signal-safe.
void RestoreLimits();

// Returns an oom_score_adj for a child so that the kernel kills the child before this process when
// memory runs out: this process's value plus `more`. Empty: do not set it, because this process is
// exempt from OOM kills, or its value can't be read.
std::string RaisedOomScore(int more);

// Checks that this process can start the threads that a program of this project needs; without them
// gRPC would hang. Thread-safe.
// Errors:
//   - ResourceExhausted: threads can't be started; names possible limits.
absl::Status CheckThreads();

// Checks that this process may open as many files as a small job needs; without them gRPC would
// abort the process. Thread-safe.
// Errors:
//   - ResourceExhausted: it may not; names the limit.
absl::Status CheckFiles();

// Checks that the stack of a thread may be large enough: with a smaller one a program of this
// project, or Python, would get SIGSEGV. Thread-safe.
// Errors:
//   - ResourceExhausted: it may not; names the limit.
absl::Status CheckStack();

// Checks that this process may have the address space of the threads that a program of this project
// starts, each of which reserves some for its own allocations: libraries abort the process if one
// can't be started. Thread-safe.
// Errors:
//   - ResourceExhausted: it may not; names the limit.
absl::Status CheckAddressSpace();

// The status of an exception that reaches the C ABI. Thread-safe.
// Errors:
//   - ResourceExhausted: a thread can't be started; names possible limits. Or memory has run out.
//   - Internal: any other exception; its text.
absl::Status StatusOf(const std::exception& error);

}  // namespace hvd::os

#endif  // BASE_OS_PROCESS_LIMITS_H_
