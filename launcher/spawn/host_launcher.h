// The interface of methods to start an agent on a host: as a child process, through ssh, by a
// scheduler's command.
#ifndef LAUNCHER_SPAWN_HOST_LAUNCHER_H_
#define LAUNCHER_SPAWN_HOST_LAUNCHER_H_

#include <optional>
#include <string>
#include <vector>

namespace hvd::launcher::spawn {

// A command whose stdin and stdout are those of the agent.
struct AgentInvocation {
  std::string file;  // with a '/': a path; else searched for in PATH
  std::vector<std::string> argv;
  std::vector<std::string> without = {};  // variables to remove from its environment
};

struct Explanation {
  std::string meaning;  // and the remedy; HOST stands for the host
  std::string line;     // the line of stderr that shows it
};

// Immutable, and so thread-safe.
class HostLauncher {
 public:
  virtual ~HostLauncher() = default;

  // Its name in messages: "ssh".
  virtual std::string name() const = 0;

  // The command that runs `horovod-agent --stdio` on `host`: the one in `install_directory` if
  // there is one, else the one in the PATH of the user's shell there.
  virtual AgentInvocation Command(const std::string& host,
                                  const std::string& install_directory) const = 0;

  // Explains the command's last lines on stderr to the user; nullopt if they contain no known
  // message.
  virtual std::optional<Explanation> Explain(const std::vector<std::string>& lines) const = 0;
};

}  // namespace hvd::launcher::spawn

#endif  // LAUNCHER_SPAWN_HOST_LAUNCHER_H_
