// What the end of a process means, for people and for the shell.
#ifndef RENDEZVOUS_MEMBERSHIP_EXIT_MEANING_H_
#define RENDEZVOUS_MEMBERSHIP_EXIT_MEANING_H_

#include <string>

#include "rendezvous/membership/events.h"

namespace hvd::rendezvous::membership {

// In words: "exit code 3", "killed by signal 9 (SIGKILL), out of memory", "killed by signal 11
// (SIGSEGV), core dumped", "killed by signal 9 (SIGKILL) by its agent: ...", "could not be started:
// ...".
std::string ExitMeaning(const WorkerExited& exited);

// Whether the process ended by itself with code 0.
bool ExitedWithZero(const WorkerExited& exited);

// What a failed job exits with on behalf of this process: its own code, 128 + its signal, or 1
// where it has none that a shell would take for a failure. Never 0.
int FailureExitCode(const WorkerExited& exited);

}  // namespace hvd::rendezvous::membership

#endif  // RENDEZVOUS_MEMBERSHIP_EXIT_MEANING_H_
