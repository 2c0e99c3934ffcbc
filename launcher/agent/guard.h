// The process above the agent that clears up after it, however it dies.
#ifndef LAUNCHER_AGENT_GUARD_H_
#define LAUNCHER_AGENT_GUARD_H_

#include "base/process.h"

namespace hvd {

// Starts the agent, hands it this process's stdin and stdout, and waits for its end; then kills
// every process that the agent has left, in whatever session it hides, and returns the exit code to
// end with: the agent's own, or 128 + its signal. SIGTERM, SIGINT and SIGHUP are passed on to the
// agent. If this process is killed itself, the agent gets SIGHUP, which ends it at once. REQUIRES:
// this process has no other threads or children.
int RunGuard(SpawnOptions agent);

}  // namespace hvd

#endif  // LAUNCHER_AGENT_GUARD_H_
