// A HostLauncher for commands that run another command on a host: a scheduler's command, kubectl,
// or one that the user gives.
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

// The prefix of the agent's command line.
struct CommandTemplate {
  std::vector<std::string> words;  // {host} is replaced by the host
  enum class Rest {
    kAsItIs,     // the words that follow are executed unchanged
    kMaybeShell  // a shell may interpret the words again
  } rest = Rest::kMaybeShell;
  std::vector<std::string> without = {};        // see AgentInvocation
  absl::Span<const Complaint> complaints = {};  // of static storage
};

// Returns the template of a known command ("srun", "blaunch", "pbs_tmrsh", "qrsh" or "kubectl"), or
// makes one from a text with {host} in it. `text` is split into words by a shell's rules; nothing
// else in it is special.
// Errors: one line.
//   - InvalidArgument: neither a known command nor a text with {host}.
absl::StatusOr<CommandTemplate> FindCommandTemplate(const std::string& text);

class CommandLauncher : public HostLauncher {
 public:
  // `path`: this process's PATH. `gpus`: the number of GPUs to request from srun, by host; 0 or no
  // entry leaves the choice to srun.
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
