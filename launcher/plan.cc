#include "launcher/plan.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "launcher/discovery/host_list.h"
#include "launcher/discovery/hostfile.h"

namespace hvd {
namespace {

constexpr absl::Duration kResolveTimeout = absl::Seconds(5);

absl::StatusOr<std::vector<HostSlots>> ListedHosts(const Options& options) {
  if (!options.hostfile.empty()) return ReadHostfile(options.hostfile);
  if (options.hosts.empty()) return std::vector<HostSlots>{{"localhost", options.num_proc}};
  absl::StatusOr<std::vector<HostSlots>> hosts = ParseHostList(options.hosts);
  if (hosts.ok()) return hosts;
  return absl::InvalidArgumentError(absl::StrCat("-H: ", hosts.status().message()));
}

absl::Status CheckIdentityFile(const std::string& file) {
  if (file.empty()) return absl::OkStatus();
  std::error_code error;
  std::string why = "it is not a file";
  if (std::filesystem::is_regular_file(file, error)) {
    if (std::ifstream(file).good()) return absl::OkStatus();
    why = std::strerror(errno);
  } else if (error) {
    why = error.message();
  }
  return absl::NotFoundError(absl::StrCat("--ssh-identity-file: can't read ", file, ": ", why));
}

AgentTarget MakeTarget(const std::string& host, bool local, const Options& options) {
  AgentTarget target;
  target.host = host;
  target.local = local;
  target.ssh.port = options.ssh_port;
  target.ssh.identity_file = options.ssh_identity_file;
  target.ssh.connect_timeout_seconds = static_cast<int>(std::min<int64_t>(
      target.ssh.connect_timeout_seconds, absl::ToInt64Seconds(options.start_timeout)));
  return target;
}

// This machine's addresses on the way to the remote hosts, as far as their names are known here.
std::vector<std::string> SourceAddresses(const std::vector<PlannedHost>& hosts,
                                         const NameTable& names, const Machine& machine) {
  std::vector<std::string> sources;
  for (const PlannedHost& host : hosts) {
    const auto found = names.find(host.target.host);
    if (host.target.local || found == names.end()) continue;
    for (const std::string& address : found->second) {
      sources.push_back(machine.source_towards(address));
    }
  }
  return sources;
}

}  // namespace

absl::StatusOr<Machine> ThisMachine() {
  Machine machine;
  machine.host_name = OwnHostName();
  ASSIGN_OR_RETURN(machine.interfaces, ListInterfaces());
  std::error_code error;
  machine.working_directory = std::filesystem::current_path(error).string();
  if (error) {
    return absl::InternalError(absl::StrCat("no working directory: ", error.message()));
  }
  machine.resolve = [](const std::vector<std::string>& names) {
    return ResolveNames(names, kResolveTimeout);
  };
  machine.source_towards = SourceAddressTowards;
  return machine;
}

absl::StatusOr<JobPlan> MakePlan(const Options& options, const Environment& environment,
                                 const Machine& machine) {
  JobPlan plan;
  ASSIGN_OR_RETURN(std::vector<HostSlots> listed, ListedHosts(options));
  ASSIGN_OR_RETURN(std::vector<HostSlots> used, TakeSlots(listed, options.num_proc));
  RETURN_IF_ERROR(CheckIdentityFile(options.ssh_identity_file));

  std::vector<std::string> unknown;
  for (const HostSlots& host : used) {
    if (!IsLocalHost(host.host, machine.host_name, machine.interfaces, {})) {
      unknown.push_back(host.host);
    }
  }
  const NameTable names = unknown.empty() ? NameTable{} : machine.resolve(unknown);
  bool all_local = true;
  for (const HostSlots& host : used) {
    const bool local = IsLocalHost(host.host, machine.host_name, machine.interfaces, names);
    all_local = all_local && local;
    plan.hosts.push_back({MakeTarget(host.host, local, options), host.slots, plan.num_proc});
    plan.num_proc += host.slots;
  }
  ASSIGN_OR_RETURN(plan.listen, ListenAddresses(machine.interfaces, options.networks, all_local,
                                                SourceAddresses(plan.hosts, names, machine)));
  plan.networks = options.networks;
  plan.command = options.command;
  plan.environment = WorkerEnvironment(environment, options.tunables, options.exports);
  RETURN_IF_ERROR(ParseRuntimeEnv(plan.environment).status());
  plan.working_directory = machine.working_directory;
  plan.start_timeout = options.start_timeout;
  plan.verbose = options.verbose;
  return plan;
}

absl::StatusOr<JobPlan> MakePlanHere(const Options& options, const Environment& environment) {
  ASSIGN_OR_RETURN(Machine machine, ThisMachine());
  return MakePlan(options, environment, machine);
}

std::string PlanTable(const JobPlan& plan) {
  std::string table =
      absl::StrCat(plan.num_proc, " processes: ", absl::StrJoin(plan.command, " "), "\n");
  for (const PlannedHost& host : plan.hosts) {
    const int last = host.first_rank + host.slots - 1;
    const std::string ranks = host.slots == 1 ? absl::StrCat("rank ", last)
                                              : absl::StrCat("ranks ", host.first_rank, "-", last);
    absl::StrAppendFormat(&table, "  %-16s %s (%s)\n", ranks, host.target.host,
                          host.target.local ? "this machine" : "over ssh");
  }
  return table;
}

}  // namespace hvd
