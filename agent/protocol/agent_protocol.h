// Constants of the launcher-agent protocol; its messages are in proto/agent.proto.
#ifndef AGENT_PROTOCOL_AGENT_PROTOCOL_H_
#define AGENT_PROTOCOL_AGENT_PROTOCOL_H_

namespace hvd::agent::protocol {

inline constexpr char kAgentProgram[] = "horovod-agent";

// The marker on the agent's stdout that precedes its frames. Text before it comes from a login
// shell.
inline constexpr char kFrameMagic[] = "\nHOROVOD-AGENT-FRAMES-1\n";

// The exit code of an agent that has sent a refusal.
inline constexpr int kAgentRefusedExitCode = 2;

// The first argument with which an agent runs its own program as a worker: agent/restarter.
inline constexpr char kRestarterMode[] = "--restarter";

}  // namespace hvd::agent::protocol

#endif  // AGENT_PROTOCOL_AGENT_PROTOCOL_H_
