// The commands that run horovod-agent on another host. Pure.
#ifndef LAUNCHER_SPAWN_AGENT_COMMAND_H_
#define LAUNCHER_SPAWN_AGENT_COMMAND_H_

#include <string>
#include <vector>

namespace hvd::launcher::spawn {

// The command for launchers that pass arguments unchanged (directly, or quoted for one shell): runs
// the agent in `install_directory` if there is one on that host, else the one in the PATH there.
std::vector<std::string> AgentCommandOfShell(const std::string& install_directory);

// The command for launchers that may or may not pass the words through another shell: no word
// contains a character that is special to a shell. So PATH is set to `path`, this machine's,
// without directories that contain such characters.
std::vector<std::string> AgentCommandOfPlainWords(const std::string& install_directory,
                                                  const std::string& path);

}  // namespace hvd::launcher::spawn

#endif  // LAUNCHER_SPAWN_AGENT_COMMAND_H_
