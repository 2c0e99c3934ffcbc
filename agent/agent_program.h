// What horovod-agent does with its command line.
#ifndef AGENT_AGENT_PROGRAM_H_
#define AGENT_AGENT_PROGRAM_H_

#include "agent/agent.h"

namespace hvd::agent {

// Returns the exit code. The process becomes the guard first; the agent proper, which attaches
// through `open_link`, is its child. REQUIRES: called by main; no other thread has been started.
int RunAgentProgram(int argc, char** argv, Agent::OpenLink open_link);

}  // namespace hvd::agent

#endif  // AGENT_AGENT_PROGRAM_H_
