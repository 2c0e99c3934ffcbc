// A HostLauncher for this machine: agents are child processes.
#ifndef LAUNCHER_SPAWN_LOCAL_LAUNCHER_H_
#define LAUNCHER_SPAWN_LOCAL_LAUNCHER_H_

#include <optional>
#include <string>
#include <vector>

#include "launcher/spawn/host_launcher.h"

namespace hvd::launcher::spawn {

class LocalLauncher : public HostLauncher {
 public:
  std::string name() const override { return "fork"; }
  AgentInvocation Command(const std::string& host,
                          const std::string& install_directory) const override;
  std::optional<Explanation> Explain(const std::vector<std::string>&) const override {
    return std::nullopt;
  }
};

}  // namespace hvd::launcher::spawn

#endif  // LAUNCHER_SPAWN_LOCAL_LAUNCHER_H_
