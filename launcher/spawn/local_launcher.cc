#include "launcher/spawn/local_launcher.h"

#include "absl/strings/str_cat.h"
#include "agent/protocol/agent_protocol.h"
#include "base/os/process.h"

namespace hvd::launcher::spawn {

AgentInvocation LocalLauncher::Command(const std::string&,
                                       const std::string& install_directory) const {
  // Beside this program first, so that both are of one installation; PATH may lead to another one.
  const absl::StatusOr<std::string> beside =
      os::FindExecutable(absl::StrCat("./", agent::protocol::kAgentProgram), "", install_directory);
  return {beside.ok() ? *beside : agent::protocol::kAgentProgram,
          {agent::protocol::kAgentProgram, "--stdio"}};
}

}  // namespace hvd::launcher::spawn
