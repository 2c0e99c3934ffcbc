#include "launcher/spawn/agent_command.h"

#include <limits.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "agent/protocol/agent_protocol.h"
#include "base/os/process.h"
#include "launcher/spawn/command.h"

namespace hvd::launcher::spawn {
namespace {

constexpr int kSshPauseSeconds = 5;

}  // namespace

std::string OwnDirectory() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  if (length <= 0) return "";
  const std::string program(path, static_cast<size_t>(length));
  return program.substr(0, program.rfind('/'));
}

AgentInvocation LocalAgentCommand(const std::string& install_directory) {
  const absl::StatusOr<std::string> beside =
      os::FindExecutable(absl::StrCat("./", agent::protocol::kAgentProgram), "", install_directory);
  return {beside.ok() ? *beside : agent::protocol::kAgentProgram,
          {agent::protocol::kAgentProgram, "--stdio"}};
}

AgentInvocation SshAgentCommand(const AgentTarget& target, const std::string& install_directory) {
  std::vector<std::string> argv = {
      "ssh",
      "-T",
      "-x",
      "-o",
      "BatchMode=yes",
      "-o",
      absl::StrCat("ConnectTimeout=", target.ssh.connect_timeout_seconds),
      "-o",
      absl::StrCat("ServerAliveInterval=", kSshPauseSeconds),
      "-o",
      absl::StrCat("ServerAliveCountMax=",
                   std::max(1, target.ssh.silence_seconds / kSshPauseSeconds))};
  if (target.ssh.port != 0) {
    argv.insert(argv.end(), {"-p", absl::StrCat(target.ssh.port)});
  }
  if (!target.ssh.identity_file.empty()) {
    argv.insert(argv.end(), {"-i", target.ssh.identity_file});
  }
  // Whatever the user's login shell is, sh takes it from here; the agent then replaces sh.
  std::string script;
  if (!install_directory.empty()) {
    script = absl::StrCat("PATH=", ShellQuote(install_directory), ":\"$PATH\"; export PATH; ");
  }
  absl::StrAppend(&script, "exec ", agent::protocol::kAgentProgram, " --stdio");
  // After "--" a host name can't be an option.
  argv.insert(argv.end(), {"--", target.host, ShellJoin({"sh", "-c", script})});
  return {"ssh", argv};
}

}  // namespace hvd::launcher::spawn
