// The commands that run horovod-agent on another host. Pure.
#ifndef LAUNCHER_SPAWN_AGENT_COMMAND_H_
#define LAUNCHER_SPAWN_AGENT_COMMAND_H_

#include <string>
#include <vector>

namespace hvd::launcher::spawn {

// For launchers that run a command as it is, or one that was quoted: the agent in
// `install_directory`, if there is one, else in the PATH there.
std::vector<std::string> AgentCommandOfShell(const std::string& install_directory);

// For launchers of which it isn't known whether a shell reads the words once more: no word has a
// character that means anything to a shell. So the PATH is this machine's, `path`, less the
// directories with such characters, as far as it can be told.
std::vector<std::string> AgentCommandOfPlainWords(const std::string& install_directory,
                                                  const std::string& path);

}  // namespace hvd::launcher::spawn

#endif  // LAUNCHER_SPAWN_AGENT_COMMAND_H_
