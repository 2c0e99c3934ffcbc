// The agent with its protocol on stdin and stdout, as horovodrun starts it.
#ifndef AGENT_STDIO_AGENT_H_
#define AGENT_STDIO_AGENT_H_

#include "agent/agent.h"

namespace hvd::agent {

// Reads the bootstrap from `input`, whose end means that the launcher is gone, and writes frames to
// `output`; both are borrowed. Return value and requirements are those of Agent::Run and Agent.
int RunStdioAgent(EventLoop& loop, int input, int output, Agent::OpenLink open_link,
                  AgentSettings settings = {});

}  // namespace hvd::agent

#endif  // AGENT_STDIO_AGENT_H_
