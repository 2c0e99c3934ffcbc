#include "launcher/plan/launcher_choice.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/os/process.h"
#include "base/status_macros.h"
#include "launcher/allocation/find_allocation.h"
#include "launcher/spawn/command_launcher.h"
#include "launcher/spawn/ssh_launcher.h"

namespace hvd::launcher::plan {
namespace {

constexpr char kSsh[] = "ssh";

std::string PathOf(const Environment& environment) {
  const auto path = environment.find("PATH");
  return path == environment.end() ? "" : path->second;
}

// The first given option that applies to ssh only; empty: none was given.
std::string OptionForSsh(const cli::Options& options) {
  if (options.ssh_port != 0) return "--ssh-port";
  return options.ssh_identity_file.empty() ? "" : "--ssh-identity-file";
}

std::string DefaultLauncher(const cli::Options& options, const Environment& environment,
                            const std::string& directory) {
  // An option for ssh is a choice of ssh.
  if (!options.allocation.has_value() || !OptionForSsh(options).empty()) return kSsh;
  const std::string& own = options.allocation->launcher;
  // Some clusters do not install the scheduler's commands on compute nodes, or in the container in
  // which horovodrun runs.
  return os::FindExecutable(own, PathOf(environment), directory).ok() ? own : kSsh;
}

absl::Status CheckIdentityFile(const std::string& file) {
  if (file.empty()) return absl::OkStatus();
  std::error_code error;
  std::string why = "it is not a file";
  if (std::filesystem::is_regular_file(file, error)) {
    // Opened, not only inspected: access may be denied to this user. ssh itself would only warn,
    // and fail later for lack of a key.
    if (std::ifstream(file).good()) return absl::OkStatus();
    why = std::strerror(errno);
  } else if (error) {
    why = error.message();
  }
  return absl::NotFoundError(absl::StrCat("--ssh-identity-file: can't read ", file, ": ", why));
}

std::shared_ptr<const spawn::HostLauncher> MakeSshLauncher(const cli::Options& options,
                                                           absl::Duration agent_timeout) {
  spawn::SshOptions ssh;
  // In a static job ssh must not give up earlier than the daemon, since the loss of a connection
  // ends the job. An elastic job loses one host for a while, so earlier detection is better.
  if (!options.elastic.has_value()) {
    ssh.silence_seconds =
        std::max(ssh.silence_seconds, static_cast<int>(absl::ToInt64Seconds(agent_timeout)));
  }
  ssh.port = options.ssh_port;
  ssh.identity_file = options.ssh_identity_file;
  ssh.connect_timeout_seconds = static_cast<int>(
      std::min<int64_t>(ssh.connect_timeout_seconds, absl::ToInt64Seconds(options.start_timeout)));
  return std::make_shared<spawn::SshLauncher>(std::move(ssh));
}

// The allocation is also searched for hosts that the user has named, since they may be part of it.
std::map<std::string, int> GpusOfHosts(const cli::Options& options,
                                       const Environment& environment) {
  absl::StatusOr<std::optional<allocation::Allocation>> allocation = options.allocation;
  if (!options.allocation.has_value()) {
    allocation = allocation::FindAllocation(environment, allocation::ReadWholeFile);
  }
  std::map<std::string, int> gpus;
  // An error is ignored: the user has named the hosts, so nothing but the numbers of GPUs depends
  // on the allocation.
  if (!allocation.ok() || !allocation->has_value()) return gpus;
  for (const allocation::AllocatedHost& host : (*allocation)->hosts) gpus[host.name] = host.gpus;
  return gpus;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const spawn::HostLauncher>> ChooseLauncher(
    const cli::Options& options, const Environment& environment, const std::string& directory,
    absl::Duration agent_timeout) {
  const std::string name = options.launcher.empty()
                               ? DefaultLauncher(options, environment, directory)
                               : options.launcher;
  if (name == kSsh) {
    RETURN_IF_ERROR(CheckIdentityFile(options.ssh_identity_file));
    return MakeSshLauncher(options, agent_timeout);
  }
  ASSIGN_OR_RETURN(spawn::CommandTemplate command, spawn::FindCommandTemplate(name));
  const std::string unfit = OptionForSsh(options);
  if (!unfit.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(unfit, " is for --launcher ssh, and --launcher ", name, " was given"));
  }
  return std::make_shared<spawn::CommandLauncher>(std::move(command), PathOf(environment),
                                                  GpusOfHosts(options, environment));
}

}  // namespace hvd::launcher::plan
