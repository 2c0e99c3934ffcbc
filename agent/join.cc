#include "agent/join.h"

#include <fcntl.h>
#include <netdb.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "agent/output/console_writer.h"
#include "agent/protocol/agent_protocol.h"
#include "base/env.h"
#include "base/fd.h"
#include "base/os/host_identity.h"
#include "base/os/protected_open.h"
#include "base/status_macros.h"
#include "base/text/names.h"
#include "base/version.h"
#include "rendezvous/security/token_file.h"

namespace hvd::agent {
namespace {

// Resolves a daemon's name and adds its addresses, as numeric "address:port", without duplicates.
absl::Status Resolve(const net::HostPort& daemon, std::vector<std::string>* addresses) {
  addrinfo hints = {};
  // Without a type, getaddrinfo returns each address three times: for TCP, UDP and raw sockets.
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(daemon.host.c_str(), daemon.port.c_str(), &hints, &found);
  if (error != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--join: no address of ", daemon.host, " is known: ", gai_strerror(error)));
  }
  for (const addrinfo* info = found; info != nullptr; info = info->ai_next) {
    char host[NI_MAXHOST];
    if (getnameinfo(info->ai_addr, info->ai_addrlen, host, sizeof(host), nullptr, 0,
                    NI_NUMERICHOST) != 0) {
      continue;
    }
    std::string address = info->ai_family == AF_INET6 ? absl::StrCat("[", host, "]:", daemon.port)
                                                      : absl::StrCat(host, ":", daemon.port);
    if (std::find(addresses->begin(), addresses->end(), address) == addresses->end()) {
      addresses->push_back(std::move(address));
    }
  }
  freeaddrinfo(found);
  return absl::OkStatus();
}

std::string NameOfThisMachine() {
  char name[HOST_NAME_MAX + 1] = {};
  gethostname(name, sizeof(name) - 1);
  return name;
}

// Slurm's name for this node comes first: host lists of the job use it, and it may differ from the
// machine's host name.
std::string OwnName(const Environment& environment) {
  const auto slurm = environment.find("SLURMD_NODENAME");
  if (slurm != environment.end() && !slurm->second.empty()) return slurm->second;
  return NameOfThisMachine();
}

// An identity that is shared by the agents whose workers can share memory; empty: not known. The
// host name is included, because copies of a running virtual machine have the same boot id.
std::string OwnMachine() {
  const std::string identity = os::HostIdentity();
  return identity.empty() ? "" : absl::StrCat(identity, "/", NameOfThisMachine());
}

// The limit of --worker-stdin: the worker reads it from a pipe, which must hold all of it.
constexpr size_t kMostInput = 64 << 10;

absl::StatusOr<std::string> ReadWorkerStdin(const std::string& path) {
  if (path.empty()) return "";
  const absl::StatusOr<Fd> opened = os::OpenProtected(path, O_RDONLY | O_NONBLOCK);
  if (!opened.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--worker-stdin: ", path, " can't be read: ", opened.status().message()));
  }
  const Fd& file = *opened;
  struct stat kind = {};
  // From a pipe, one read would take what happens to be there, and the rest would be missing.
  if (fstat(file.get(), &kind) == 0 && (S_ISFIFO(kind.st_mode) || S_ISSOCK(kind.st_mode))) {
    return absl::InvalidArgumentError(
        absl::StrCat("--worker-stdin: ", path, " is a pipe, and must be a file"));
  }
  std::string text(kMostInput + 1, '\0');
  const ssize_t size = read(file.get(), text.data(), text.size());
  if (size < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--worker-stdin: ", path, " can't be read: ", strerror(errno)));
  }
  if (static_cast<size_t>(size) > kMostInput) {
    return absl::InvalidArgumentError(
        absl::StrCat("--worker-stdin: ", path, " has more than ", kMostInput, " bytes"));
  }
  text.resize(static_cast<size_t>(size));
  return text;
}

void FillCommand(const JoinOptions& options, const Environment& environment,
                 pb::JobCommand& command) {
  auto& variables = *command.mutable_environment();
  for (const auto& [name, value] : environment) variables[name] = value;
  // An adopted process runs already, and has chosen its directory.
  if (options.adopt.has_value()) return;
  for (const std::string& argument : options.command) command.add_argv(argument);
  command.set_restarts(options.restarts);
  // The same variables as horovodrun sets for its workers.
  variables["PYTHONUNBUFFERED"] = "1";
  variables["HOROVOD_CONTROLLER"] = "gloo";
  std::error_code gone;
  command.set_working_directory(std::filesystem::current_path(gone).string());
}

}  // namespace

absl::StatusOr<pb::AgentBootstrap> MakeJoinBootstrap(const JoinOptions& options) {
  const Environment environment = ReadEnvironment();
  pb::AgentBootstrap bootstrap;
  ASSIGN_OR_RETURN(
      *bootstrap.mutable_credentials(),
      rendezvous::security::AwaitTokenFile(options.token_file, options.start_timeout, [&options] {
        fprintf(stderr, "%s: waiting for --token-file %s\n", protocol::kAgentProgram,
                options.token_file.c_str());
      }));
  std::vector<std::string> addresses;
  for (const net::HostPort& daemon : options.daemons) RETURN_IF_ERROR(Resolve(daemon, &addresses));
  for (const std::string& address : addresses) bootstrap.add_daemon_addresses(address);
  bootstrap.set_version(kVersion);
  bootstrap.set_host(options.host.empty() ? OwnName(environment) : options.host);
  RETURN_IF_ERROR(text::CheckName("SLURMD_NODENAME, or this machine's name", bootstrap.host()));
  bootstrap.set_machine(options.machine.empty() ? OwnMachine() : options.machine);
  bootstrap.set_slots(options.slots);
  for (const std::string& network : options.networks) bootstrap.add_networks(network);
  FillCommand(options, environment, *bootstrap.mutable_command());
  ASSIGN_OR_RETURN(*bootstrap.mutable_command()->mutable_input(),
                   ReadWorkerStdin(options.worker_stdin));
  return bootstrap;
}

std::string DaemonName(const JoinOptions& options, const pb::AgentBootstrap& bootstrap) {
  if (options.daemons.size() > 1) return absl::StrJoin(bootstrap.daemon_addresses(), ",");
  const net::HostPort& daemon = options.daemons[0];
  const std::string name = absl::StrCat(daemon.host, ":", daemon.port);
  // A name with several addresses is not resolved again: the route search determines the reachable
  // address once, at the start.
  const bool numeric = absl::StrContains(daemon.host, ':') || name == bootstrap.daemon_addresses(0);
  return numeric || bootstrap.daemon_addresses_size() != 1 ? "" : name;
}

int RunJoinedAgent(EventLoop& loop, const JoinOptions& options, const os::Starter& starter,
                   std::optional<os::OtherProcess> adoptee, const pb::AgentBootstrap& bootstrap,
                   Agent::OpenLink open_link) {
  AgentSettings settings;
  settings.alone = true;
  settings.daemon_name = DaemonName(options, bootstrap);
  settings.start_timeout = options.start_timeout;
  settings.drain_grace = options.grace;
  std::optional<process::Adoption> adoption;
  if (adoptee.has_value()) {
    adoption.emplace(loop, *std::move(adoptee), STDIN_FILENO, STDOUT_FILENO);
    settings.adoption = &*adoption;
  }
  // With an adopted process stdout carries the protocol's lines, so all output goes to stderr.
  const int out = adoption.has_value() ? STDERR_FILENO : STDOUT_FILENO;
  output::ConsoleWriter writer(loop, out, STDERR_FILENO);
  Agent agent(loop, writer, std::move(open_link), settings);
  loop.Post([&] { agent.Begin(bootstrap); });
  starter.Watch(loop, [&agent](const std::string& what) {
    fprintf(stderr, "%s stops its workers and exits: %s\n", protocol::kAgentProgram, what.c_str());
    agent.LauncherGone();
  });
  return agent.Run();
}

}  // namespace hvd::agent
