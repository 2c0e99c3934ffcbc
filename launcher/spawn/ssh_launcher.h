// A HostLauncher that uses the system's ssh client.
#ifndef LAUNCHER_SPAWN_SSH_LAUNCHER_H_
#define LAUNCHER_SPAWN_SSH_LAUNCHER_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launcher/spawn/host_launcher.h"

namespace hvd::launcher::spawn {

struct SshOptions {
  int port = 0;               // 0: ssh's own choice
  std::string identity_file;  // empty: ssh's own choice
  int connect_timeout_seconds = 10;
  int silence_seconds = 15;  // time limit for an sshd that does not answer
};

// Checks host keys according to the user's ssh configuration, and never prompts (batch mode).
class SshLauncher : public HostLauncher {
 public:
  explicit SshLauncher(SshOptions options) : options_(std::move(options)) {}

  std::string name() const override { return "ssh"; }
  AgentInvocation Command(const std::string& host,
                          const std::string& install_directory) const override;
  std::optional<Explanation> Explain(const std::vector<std::string>& lines) const override;
  const SshOptions& options() const { return options_; }

 private:
  const SshOptions options_;
};

}  // namespace hvd::launcher::spawn

#endif  // LAUNCHER_SPAWN_SSH_LAUNCHER_H_
