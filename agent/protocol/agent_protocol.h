// What launcher and agent must agree on besides proto/agent.proto.
#ifndef AGENT_PROTOCOL_AGENT_PROTOCOL_H_
#define AGENT_PROTOCOL_AGENT_PROTOCOL_H_

namespace hvd::agent::protocol {

inline constexpr char kAgentProgram[] = "horovod-agent";

// On the agent's stdout, everything before this is what a login shell printed; everything after it
// is frames.
inline constexpr char kFrameMagic[] = "\nHOROVOD-AGENT-FRAMES-1\n";

// How an agent exits that has sent a refusal.
inline constexpr int kAgentRefusedExitCode = 2;

}  // namespace hvd::agent::protocol

#endif  // AGENT_PROTOCOL_AGENT_PROTOCOL_H_
