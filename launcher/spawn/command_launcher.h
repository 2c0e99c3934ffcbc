// A launcher of agents on other hosts, by a command that runs another one there: a scheduler's own,
// kubectl, or any that the user names.
#ifndef LAUNCHER_SPAWN_COMMAND_LAUNCHER_H_
#define LAUNCHER_SPAWN_COMMAND_LAUNCHER_H_

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "launcher/spawn/complaint.h"
#include "launcher/spawn/host_launcher.h"

namespace hvd::launcher::spawn {

// The words in front of the agent's command.
struct CommandTemplate {
  std::vector<std::string> words;  // {host} in them stands for the host
  enum class Rest {
    kAsItIs,     // what follows is executed with the arguments that it has
    kMaybeShell  // a shell may read it once more
  } rest = Rest::kMaybeShell;
  std::vector<std::string> without = {};        // see AgentInvocation
  absl::Span<const Complaint> complaints = {};  // of static storage
};

// The template of "srun", "blaunch", "pbs_tmrsh", "qrsh" or "kubectl", or one with {host} in it.
// `text` is split into words as a shell does it; nothing else in it is special.
// Errors: one line.
//   - InvalidArgument: neither of these.
absl::StatusOr<CommandTemplate> FindCommandTemplate(const std::string& text);

class CommandLauncher : public HostLauncher {
 public:
  // `path`: this process's PATH. `gpus`: how many of a host's GPUs srun is to ask for; a host that
  // is not in it, or has 0, leaves the choice to srun.
  CommandLauncher(CommandTemplate command, std::string path, std::map<std::string, int> gpus)
      : command_(std::move(command)), path_(std::move(path)), gpus_(std::move(gpus)) {}

  std::string name() const override;
  AgentInvocation Command(const std::string& host,
                          const std::string& install_directory) const override;
  std::optional<Explanation> Explain(const std::vector<std::string>& lines) const override {
    return FindComplaint(command_.complaints, name(), lines);
  }

 private:
  const CommandTemplate command_;
  const std::string path_;
  const std::map<std::string, int> gpus_;
};

}  // namespace hvd::launcher::spawn

#endif  // LAUNCHER_SPAWN_COMMAND_LAUNCHER_H_
