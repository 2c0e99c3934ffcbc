// The exit status of a worker process in words and as a shell exit code.
#ifndef RENDEZVOUS_MEMBERSHIP_EXIT_MEANING_H_
#define RENDEZVOUS_MEMBERSHIP_EXIT_MEANING_H_

#include <string>

#include "rendezvous/membership/events.h"

namespace hvd::rendezvous::membership {

// A description for users: "exit code 3", "killed by signal 9 (SIGKILL), out of memory", "killed by
// signal 11 (SIGSEGV), core dumped", "killed by signal 9 (SIGKILL) by its agent: ...", "could not
// be started: ...".
std::string ExitMeaning(const WorkerExited& exited);

// Whether the process ended by itself with code 0.
bool ExitedWithZero(const WorkerExited& exited);

// The exit code of a job that failed because of this process: its exit code, 128 + its signal, or 1
// if it exited with 0. Never 0.
int FailureExitCode(const WorkerExited& exited);

}  // namespace hvd::rendezvous::membership

#endif  // RENDEZVOUS_MEMBERSHIP_EXIT_MEANING_H_
