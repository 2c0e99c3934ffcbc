// The main program of horovod-agent.
#ifndef AGENT_AGENT_PROGRAM_H_
#define AGENT_AGENT_PROGRAM_H_

#include "agent/agent.h"

namespace hvd::agent {

// Returns the exit code. This process becomes the guard; its child is the agent, which attaches
// through `open_link`. REQUIRES: called by main; no other thread has been started.
int RunAgentProgram(int argc, char** argv, Agent::OpenLink open_link);

}  // namespace hvd::agent

#endif  // AGENT_AGENT_PROGRAM_H_
