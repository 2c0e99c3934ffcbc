// The guard: a watchdog process above the agent, which kills what the agent leaves behind.
#ifndef AGENT_GUARD_H_
#define AGENT_GUARD_H_

#include <functional>

#include "absl/time/time.h"

namespace hvd::agent {

// Forks: the child runs `agent`, which alone keeps stdin and stdout, and exits with its result.
// This process waits for the child's end and then kills every process that the agent has left,
// whatever its session. Returns the exit code to end with: the agent's own, or 128 + its signal.
//
// SIGTERM, SIGINT and SIGHUP are passed on to the agent. An agent that a signal (SIGSTOP) has
// stopped for longer than `stopped_patience` is killed: it does no work, and blocks the place of an
// agent that would. If this process is killed itself, the agent gets SIGHUP, which ends it at once.
// REQUIRES: this process has no other threads or children.
int RunGuard(const std::function<int()>& agent,
             absl::Duration stopped_patience = absl::Seconds(10));

}  // namespace hvd::agent

#endif  // AGENT_GUARD_H_
