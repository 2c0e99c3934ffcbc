// Which command starts an agent on a host.
#ifndef LAUNCHER_SPAWN_AGENT_COMMAND_H_
#define LAUNCHER_SPAWN_AGENT_COMMAND_H_

#include <string>
#include <vector>

#include "launcher/spawn/agent_process.h"

namespace hvd::launcher::spawn {

struct AgentInvocation {
  std::string file;  // with a '/': a path; else to be looked for in PATH
  std::vector<std::string> argv;
};

// The directory that the running program is installed in; empty if the kernel does not tell.
std::string OwnDirectory();

// The agent in `install_directory`, or else the one in PATH.
AgentInvocation LocalAgentCommand(const std::string& install_directory);

// The system's ssh client, which runs the agent on the host: the one in `install_directory` if
// there is one, else in the PATH of the user's shell there. Host keys are checked as the user's ssh
// configuration says; nothing is ever asked.
AgentInvocation SshAgentCommand(const AgentTarget& target, const std::string& install_directory);

}  // namespace hvd::launcher::spawn

#endif  // LAUNCHER_SPAWN_AGENT_COMMAND_H_
