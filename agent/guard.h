// The process above the agent that clears up after it, however it dies.
#ifndef AGENT_GUARD_H_
#define AGENT_GUARD_H_

#include <functional>

#include "absl/time/time.h"

namespace hvd::agent {

// Forks: the child runs `agent`, which keeps stdin and stdout for itself, and exits with what it
// returns. Waits for its end; then kills every process that the agent has left, in whatever session
// it hides, and returns the exit code to end with: the agent's own, or 128 + its signal. SIGTERM,
// SIGINT and SIGHUP are passed on to the agent. An agent that a signal (SIGSTOP) has stopped for
// longer than `stopped_patience` is killed: it serves nobody, and holds the place of one that
// would. If this process is killed itself, the agent gets SIGHUP, which ends it at once. REQUIRES:
// this process has no other threads or children.
int RunGuard(const std::function<int()>& agent,
             absl::Duration stopped_patience = absl::Seconds(10));

}  // namespace hvd::agent

#endif  // AGENT_GUARD_H_
