// The guard: a watchdog process that is the agent's parent and kills the processes that the agent
// leaves behind.
#ifndef AGENT_GUARD_H_
#define AGENT_GUARD_H_

#include <functional>

#include "absl/time/time.h"

namespace hvd::agent {

// Forks a child that runs `agent` and exits with its result; only the child keeps stdin and stdout.
// This process waits for the child's end and then kills all remaining descendants of the agent, in
// whatever session they are. Returns the exit code for this process: the agent's, or 128 + the
// signal that killed the agent.
// SIGTERM, SIGINT, SIGHUP and the notices of schedulers are passed on to the agent. If SIGHUP is
// ignored (nohup), it stays so in both. An agent that has been stopped by a signal (SIGSTOP) for
// longer than `stopped_patience` is killed: it does no work, and no other agent can take its host's
// place while it exists. If this process is killed, the agent gets SIGTERM, and ends at once
// because its parent has gone. REQUIRES: this process has no other threads or children.
int RunGuard(const std::function<int()>& agent,
             absl::Duration stopped_patience = absl::Seconds(10));

}  // namespace hvd::agent

#endif  // AGENT_GUARD_H_
