// The agent on stdin and stdout, as horovodrun starts it.
#ifndef AGENT_STDIO_AGENT_H_
#define AGENT_STDIO_AGENT_H_

#include "agent/agent.h"

namespace hvd::agent {

// Takes its bootstrap from `input`, whose end means that the launcher has gone, and writes frames
// to `output`; both are borrowed. Returns and REQUIRES what Agent does.
int RunStdioAgent(EventLoop& loop, int input, int output, Agent::OpenLink open_link,
                  AgentSettings settings = {});

}  // namespace hvd::agent

#endif  // AGENT_STDIO_AGENT_H_
