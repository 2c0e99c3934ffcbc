// A launcher of agents on other hosts, by the system's ssh client.
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
  int silence_seconds = 15;  // of an sshd that is gone or overloaded
};

// Host keys are checked according to the user's ssh configuration; nothing is ever asked.
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
