#include "launcher/spawn/agent_command.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "agent/protocol/agent_protocol.h"
#include "launcher/spawn/command.h"

namespace hvd::launcher::spawn {

std::vector<std::string> AgentCommandOfShell(const std::string& install_directory) {
  // `sh -c` makes the rest independent of the user's login shell. `exec` replaces sh by the agent,
  // so that no shell remains between the connection and the agent.
  std::string script;
  if (!install_directory.empty()) {
    script = absl::StrCat("PATH=", ShellQuote(install_directory), ":\"$PATH\"; export PATH; ");
  }
  absl::StrAppend(&script, "exec ", agent::protocol::kAgentProgram, " --stdio");
  return {"sh", "-c", script};
}

std::vector<std::string> AgentCommandOfPlainWords(const std::string& install_directory,
                                                  const std::string& path) {
  std::vector<std::string> directories;
  for (const std::string& directory :
       std::vector<std::string>(absl::StrSplit(absl::StrCat(install_directory, ":", path), ':'))) {
    const bool plain = ShellQuote(directory) == directory;
    // A directory with special characters is left out: these launchers may pass the words to a
    // shell without quotes. A relative one means another place on another host.
    if (plain && directory.front() == '/') directories.push_back(directory);
  }
  std::vector<std::string> command;
  if (!directories.empty()) {
    command = {"env", absl::StrCat("PATH=", absl::StrJoin(directories, ":"))};
  }
  command.insert(command.end(), {agent::protocol::kAgentProgram, "--stdio"});
  return command;
}

}  // namespace hvd::launcher::spawn
