#include "launcher/plan/plan.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/os/process.h"
#include "base/os/usable_cores.h"
#include "base/settings/runtime_settings.h"
#include "base/status_macros.h"
#include "base/text/given_file.h"
#include "base/text/names.h"
#include "launcher/discovery/host_list.h"
#include "launcher/discovery/host_script.h"
#include "launcher/discovery/hostfile.h"
#include "launcher/plan/launcher_choice.h"
#include "launcher/plan/visible_gpus.h"
#include "launcher/spawn/local_launcher.h"

namespace hvd::launcher::plan {
namespace {

constexpr absl::Duration kResolveTimeout = absl::Seconds(5);
// The value of max_workers that means "no limit".
constexpr int kVeryMany = 1 << 20;
// The most slots of a host where nothing else limits the processes there. No machine has as many
// GPUs, and few have as many cores: more is taken for a mistake.
constexpr int kMostWithoutLimit = 1024;

using Hosts = std::vector<rendezvous::membership::HostSlots>;

// The number of slots needed at the start: the processes and the spares.
int NeededSlots(const cli::Options& options) {
  return options.num_proc + (options.elastic.has_value() ? options.elastic->spec.spares : 0);
}

// The slots of this machine for -np auto: a GPU or a core each.
int OwnSlots(const LocalMachine& machine) {
  return machine.gpus > 0 ? machine.gpus : std::max(1, machine.cores);
}

// The hosts with the slots of the allocation. If the user requests more processes than slots, they
// are spread evenly over the hosts.
Hosts AllocatedHosts(const allocation::Allocation& allocation, int needed) {
  int64_t slots = 0;
  for (const allocation::AllocatedHost& host : allocation.hosts) slots += host.slots;
  const int all = static_cast<int>(allocation.hosts.size());
  Hosts hosts;
  for (const allocation::AllocatedHost& host : allocation.hosts) {
    const int place = static_cast<int>(hosts.size());
    const int share = needed / all + (place < needed % all ? 1 : 0);
    hosts.push_back({host.name, slots < needed ? share : host.slots});
  }
  return hosts;
}

absl::StatusOr<Hosts> ListedHosts(const cli::Options& options, const LocalMachine& machine) {
  if (!options.hostfile.empty()) return discovery::ReadHostfile(options.hostfile);
  if (options.allocation.has_value()) {
    return AllocatedHosts(*options.allocation, NeededSlots(options));
  }
  // As many slots as are needed, whatever the number of cores: -np alone means this machine, as in
  // Horovod.
  if (options.hosts.empty()) {
    return Hosts{{"localhost", options.auto_num_proc ? OwnSlots(machine) : NeededSlots(options)}};
  }
  absl::StatusOr<Hosts> hosts = discovery::ParseHostList(options.hosts);
  if (hosts.ok()) return hosts;
  std::error_code error;
  if (std::filesystem::is_regular_file(options.hosts, error)) {
    return absl::InvalidArgumentError(
        absl::StrCat("-H: ", text::Quoted(options.hosts), " is a file; give it with --hostfile"));
  }
  return absl::InvalidArgumentError(absl::StrCat("-H: ", hosts.status().message()));
}

// Returns the script as an absolute path. A name without a '/' is searched for in the working
// directory, then in PATH.
absl::StatusOr<std::string> FindScript(const std::string& script, const Environment& environment,
                                       const std::string& directory) {
  absl::StatusOr<std::string> found = os::FindExecutable("./" + script, "", directory);
  if (absl::StrContains(script, '/')) {
    found = os::FindExecutable(script, "", directory);
  } else if (!found.ok()) {
    const auto path = environment.find("PATH");
    const auto command =
        os::FindExecutable(script, path == environment.end() ? "" : path->second, directory);
    if (command.ok()) found = command;
  }
  // Absolute, because the script is run again later and must stay the same file.
  if (found.ok()) return (std::filesystem::path(directory) / *found).lexically_normal().string();
  return absl::Status(found.status().code(),
                      absl::StrCat("--host-discovery-script: ", script,
                                   absl::IsPermissionDenied(found.status())
                                       ? " is not executable; chmod +x makes it so"
                                       : " does not exist"));
}

// The error for a script whose interpreter's name ends with a carriage return, which the kernel
// reports as a file that it can't find.
absl::Status CheckLineEnds(const std::string& script) {
  std::ifstream file(script, std::ios::binary);
  std::string first(256, '\0');
  file.read(first.data(), static_cast<std::streamsize>(first.size()));
  first.resize(static_cast<size_t>(file.gcount()));
  const size_t end = first.find('\n');
  if (!absl::StartsWith(first, "#!") || end == std::string::npos || first[end - 1] != '\r')
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--host-discovery-script: ", script,
                                                 " has the line ends of Windows (CRLF); sed -i "
                                                 "'s/\\r$//' removes them"));
}

// Sets what to run: a script, or a command with arguments as Horovod's shell takes it.
absl::Status ChooseScript(const std::string& given, const Environment& environment,
                          const std::string& directory, discovery::HostScriptOptions& script) {
  const absl::StatusOr<std::string> found = FindScript(given, environment, directory);
  if (found.ok()) {
    script.path = *found;
    return CheckLineEnds(script.path);
  }
  const std::vector<std::string> words =
      absl::StrSplit(given, absl::ByAnyChar(" \t"), absl::SkipEmpty());
  if (words.size() < 2 || !absl::IsNotFound(found.status())) return found.status();
  RETURN_IF_ERROR(FindScript(words[0], environment, directory).status());
  script.path = given;
  script.is_command = true;
  return absl::OkStatus();
}

// In an elastic job more ranks may come later.
absl::Status CheckShownRanks(const cli::Options& options) {
  if (options.elastic.has_value()) return absl::OkStatus();
  for (const auto& [first, last] : options.output.shown_ranks) {
    if (last < options.num_proc) continue;
    return absl::InvalidArgumentError(absl::StrCat("--ranks-filter: there is no rank ", last,
                                                   " in a job of ", options.num_proc,
                                                   " processes; the first is rank 0"));
  }
  return absl::OkStatus();
}

ElasticPlan MakeElasticPlan(const options::ElasticOptions& options) {
  ElasticPlan plan;
  plan.min_workers = options.min_workers;
  plan.max_workers = options.max_workers > 0 ? options.max_workers : kVeryMany;
  plan.spec = options.spec;
  return plan;
}

// What scripts are told of how often they may be started again.
std::string MostRestarts(const ElasticPlan& plan) {
  return absl::StrCat(plan.spec.reset_limit.value_or(plan.spec.budget.failures));
}

// Makes the host source from the options. A new kind of source is added here.
absl::StatusOr<std::shared_ptr<discovery::HostSource>> MakeSource(const cli::Options& options,
                                                                  const Environment& environment,
                                                                  const LocalMachine& machine) {
  if (options.elastic.has_value() && !options.elastic->script.empty()) {
    discovery::HostScriptOptions script;
    RETURN_IF_ERROR(
        ChooseScript(options.elastic->script, environment, machine.working_directory, script));
    script.slots_per_host = options.elastic->slots_per_host;
    return std::make_shared<discovery::HostScript>(std::move(script));
  }
  ASSIGN_OR_RETURN(std::vector<rendezvous::membership::HostSlots> listed,
                   ListedHosts(options, machine));
  return std::make_shared<discovery::FixedHosts>(std::move(listed));
}

// Sets the number of processes that -np auto stands for: of all slots, or in a job whose hosts are
// not known yet, of its minimum.
absl::Status FindNumProc(discovery::HostSource& source, cli::Options& options) {
  if (!options.auto_num_proc) return absl::OkStatus();
  options::ElasticOptions* const elastic =
      options.elastic.has_value() ? &*options.elastic : nullptr;
  int64_t slots = elastic != nullptr ? std::max(1, elastic->min_workers) : 1;
  if (!source.is_dynamic()) {
    ASSIGN_OR_RETURN(const Hosts hosts, source.Next(Cancellation()));
    slots = 0;
    for (const rendezvous::membership::HostSlots& host : hosts) slots += host.slots;
  }
  const int64_t most =
      elastic != nullptr && elastic->max_workers > 0 ? elastic->max_workers : slots;
  if (std::min(slots, most) > kVeryMany) {
    return absl::InvalidArgumentError(absl::StrCat(
        "-np auto: the hosts have ", slots, " slots; a job has ", kVeryMany, " processes at most"));
  }
  options.num_proc = static_cast<int>(std::min(slots, most));
  if (elastic == nullptr) return absl::OkStatus();
  if (elastic->min_workers == 0) elastic->min_workers = options.num_proc;
  if (elastic->min_workers <= options.num_proc) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--min-np (", elastic->min_workers,
                                                 ") must not be more than -np auto, which is ",
                                                 options.num_proc, " here"));
}

// The hosts that are known at the start: none of a dynamic source. A static job keeps only the
// slots that it needs; an elastic job keeps all, since it can grow beyond -np.
discovery::HostSource::Hosts HostsToUse(const cli::Options& options,
                                        discovery::HostSource& source) {
  if (source.is_dynamic()) return std::vector<rendezvous::membership::HostSlots>{};
  ASSIGN_OR_RETURN(const std::vector<rendezvous::membership::HostSlots> listed,
                   source.Next(Cancellation()));
  ASSIGN_OR_RETURN(const std::vector<rendezvous::membership::HostSlots> needed,
                   discovery::TakeSlots(listed, options.num_proc));
  return options.elastic.has_value() ? listed : needed;
}

// This machine's source addresses on the routes to the remote hosts whose names can be resolved.
std::vector<std::string> SourceAddresses(const std::vector<PlannedHost>& hosts,
                                         const net::NameTable& names, const LocalMachine& machine) {
  std::vector<std::string> sources;
  for (const PlannedHost& host : hosts) {
    const auto found = names.find(host.target.host);
    // A name that can't be resolved here may be an alias of ssh's configuration, which only ssh
    // knows.
    if (host.target.local || found == names.end()) continue;
    for (const std::string& address : found->second) {
      sources.push_back(machine.source_towards(address));
    }
  }
  return sources;
}

absl::StatusOr<std::vector<std::string>> ListenOn(const JobPlan& plan,
                                                  const std::vector<std::string>& networks,
                                                  const LocalMachine& machine,
                                                  const net::NameTable& names) {
  const bool all_local = std::all_of(plan.hosts.begin(), plan.hosts.end(),
                                     [](const PlannedHost& host) { return host.target.local; });
  // A dynamic source has no hosts yet. So "all hosts are local" says nothing then, and the daemon
  // must be reachable for hosts to come.
  const bool searches = plan.source->is_dynamic();
  auto listen = net::ListenAddresses(machine.interfaces, networks, all_local && !searches,
                                     SourceAddresses(plan.hosts, names, machine));
  // On a machine without a network the hosts of a dynamic source can only be this machine.
  if (!listen.ok() && searches && networks.empty()) {
    return net::ListenAddresses(machine.interfaces, networks, /*all_local=*/true, {});
  }
  return listen;
}

// A line about the number of threads per worker, with this machine as the example.
std::string ThreadsLine(const JobPlan& plan) {
  std::string line = "  OMP_NUM_THREADS: a host's usable cores / its processes";
  for (const PlannedHost& host : plan.hosts) {
    if (!host.target.local) continue;
    const int workers =
        plan.elastic.has_value() ? std::min(host.slots, plan.elastic->max_workers) : host.slots;
    absl::StrAppend(&line, ", on ", host.target.host, " ", plan.shared_cores, "/", workers, ": ",
                    os::ThreadsOfWorker(plan.shared_cores, workers));
    break;
  }
  return absl::StrCat(line, " (--no-omp-threads leaves it alone)\n");
}

}  // namespace

absl::Status CheckSlots(const std::vector<rendezvous::membership::HostSlots>& hosts,
                        const JobPlan& plan) {
  if (!plan.elastic.has_value() || plan.elastic->max_workers < kVeryMany) return absl::OkStatus();
  for (const rendezvous::membership::HostSlots& host : hosts) {
    if (host.slots <= kMostWithoutLimit) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "host ", host.host, " has ", host.slots,
        " slots, and the job would start a process in each: limit them with --max-np (without it a "
        "host may have ",
        kMostWithoutLimit, " slots)"));
  }
  return absl::OkStatus();
}

std::vector<PlannedHost> PlaceHosts(const std::vector<rendezvous::membership::HostSlots>& hosts,
                                    const std::shared_ptr<const spawn::HostLauncher>& launcher,
                                    const LocalMachine& machine, net::NameTable& names) {
  // Only names that are not obviously local are resolved: a job on one machine needs no resolver.
  const auto child = std::make_shared<spawn::LocalLauncher>();
  std::vector<std::string> unknown;
  for (const rendezvous::membership::HostSlots& host : hosts) {
    if (!net::IsLocalHost(host.host, machine.host_name, machine.interfaces, {})) {
      unknown.push_back(host.host);
    }
  }
  // All at once and with one time limit: a name server that does not answer must not cost it for
  // each host.
  if (!unknown.empty()) names = machine.resolve(unknown);
  std::vector<PlannedHost> placed;
  int rank = 0;
  for (const rendezvous::membership::HostSlots& host : hosts) {
    const bool local = net::IsLocalHost(host.host, machine.host_name, machine.interfaces, names);
    const std::shared_ptr<const spawn::HostLauncher> own = child;
    placed.push_back({{host.host, local, local ? own : launcher}, host.slots, rank});
    rank += host.slots;
  }
  return placed;
}

absl::StatusOr<LocalMachine> ThisMachine() {
  LocalMachine machine;
  machine.host_name = net::OwnHostName();
  ASSIGN_OR_RETURN(machine.interfaces, net::ListInterfaces());
  std::error_code error;
  machine.working_directory = std::filesystem::current_path(error).string();
  if (error) {
    return absl::InternalError(absl::StrCat("no working directory: ", error.message()));
  }
  machine.resolve = [](const std::vector<std::string>& names) {
    return net::ResolveNames(names, kResolveTimeout);
  };
  machine.source_towards = net::SourceAddressTowards;
  machine.cores = os::UsableCores();
  return machine;
}

namespace {

absl::StatusOr<RehearsalPlan> MakeRehearsalPlan(const cli::Options& options, const JobPlan& plan) {
  const auto in_option = [](const absl::Status& status) {
    return absl::Status(status.code(), absl::StrCat("--inject: ", status.message()));
  };
  const auto text = text::ReadGivenFile(options.inject, rehearsal::kMostCampaignMib);
  if (!text.ok()) {
    return in_option(absl::Status(text.status().code(),
                                  absl::StrCat(options.inject, ": ", text.status().message())));
  }
  absl::StatusOr<rehearsal::Campaign> campaign = rehearsal::ParseCampaign(*text, options.inject);
  if (!campaign.ok()) return in_option(campaign.status());
  rehearsal::JobFacts facts;
  facts.max_workers = plan.elastic->max_workers;
  facts.on_corruption = plan.elastic->spec.on_corruption;
  for (const PlannedHost& host : plan.hosts) facts.hosts.push_back(host.target.host);
  const absl::Status fits = rehearsal::CheckCampaign(*campaign, facts);
  if (!fits.ok()) return in_option(fits);
  return RehearsalPlan{*std::move(campaign), options.inject_report};
}

}  // namespace

absl::StatusOr<JobPlan> MakePlan(const cli::Options& given, const Environment& environment,
                                 const LocalMachine& machine) {
  JobPlan plan;
  cli::Options options = given;
  plan.environment = cli::WorkerEnvironment(environment, options.tunables, options.exports);
  ASSIGN_OR_RETURN(const settings::RuntimeEnv runtime, settings::ParseRuntimeEnv(plan.environment));
  plan.agent_timeout = runtime.agent_timeout;
  plan.encrypt_data = runtime.encrypt_data;
  ASSIGN_OR_RETURN(plan.launcher, ChooseLauncher(options, environment, machine.working_directory,
                                                 plan.agent_timeout));
  ASSIGN_OR_RETURN(plan.source, MakeSource(options, environment, machine));
  RETURN_IF_ERROR(FindNumProc(*plan.source, options));
  plan.num_proc = options.num_proc;
  if (options.elastic.has_value()) {
    plan.elastic = MakeElasticPlan(*options.elastic);
    plan.elastic->spec.on_corruption = runtime.on_corruption;
  }
  ASSIGN_OR_RETURN(const std::vector<rendezvous::membership::HostSlots> hosts,
                   HostsToUse(options, *plan.source));
  RETURN_IF_ERROR(CheckSlots(hosts, plan));
  net::NameTable names;
  plan.hosts = PlaceHosts(hosts, plan.launcher, machine, names);
  ASSIGN_OR_RETURN(plan.listen, ListenOn(plan, options.networks, machine, names));
  if (options.allocation.has_value()) {
    plan.hosts_from =
        absl::StrCat(options.allocation->job, ", a slot for each ", options.allocation->slot);
    plan.hosts_source = options.allocation->source;
  }
  RETURN_IF_ERROR(CheckShownRanks(options));
  plan.shown_ranks = options.output.shown_ranks;
  plan.networks = options.networks;
  plan.command = options.command;
  plan.restarts = options.restarts;
  if (plan.restarts) plan.environment["TORCHELASTIC_MAX_RESTARTS"] = MostRestarts(*plan.elastic);
  plan.working_directory = machine.working_directory;
  const bool has_own_threads = plan.environment.count("OMP_NUM_THREADS") > 0;
  // A value that the user has set is passed on unchanged.
  if (runtime.omp_threads && !has_own_threads) plan.shared_cores = machine.cores;
  plan.start_timeout = options.start_timeout;
  plan.metrics = options.metrics;
  plan.verbose = options.verbose;
  if (!options.inject.empty()) {
    ASSIGN_OR_RETURN(plan.rehearsal, MakeRehearsalPlan(options, plan));
  }
  return plan;
}

absl::StatusOr<JobPlan> MakePlanHere(const cli::Options& options, const Environment& environment) {
  ASSIGN_OR_RETURN(LocalMachine machine, ThisMachine());
  std::optional<std::string> devices;
  const auto variable = environment.find("CUDA_VISIBLE_DEVICES");
  if (variable != environment.end()) devices = variable->second;
  machine.gpus = VisibleGpus(devices);
  return MakePlan(options, environment, machine);
}

std::string PlanTable(const JobPlan& plan) {
  std::string table = absl::StrCat(plan.num_proc, " processes");
  if (plan.elastic.has_value()) {
    const bool bounded = plan.elastic->max_workers < kVeryMany;
    absl::StrAppend(&table, " (at least ", plan.elastic->min_workers,
                    bounded ? absl::StrCat(", at most ", plan.elastic->max_workers) : "", ")");
  }
  absl::StrAppend(&table, ": ", absl::StrJoin(plan.command, " "), "\n");
  if (plan.source->is_dynamic()) {
    absl::StrAppend(&table, "  on hosts that ", plan.source->name(), " finds\n");
  }
  if (!plan.hosts_from.empty()) {
    absl::StrAppend(&table, "  on the hosts of ", plan.hosts_from, "\n");
  }
  for (const PlannedHost& host : plan.hosts) {
    const int last = host.first_rank + host.slots - 1;
    std::string place = host.slots == 1 ? absl::StrCat("rank ", last)
                                        : absl::StrCat("ranks ", host.first_rank, "-", last);
    if (plan.elastic.has_value()) {
      place = absl::StrCat(host.slots, host.slots == 1 ? " slot" : " slots");
    }
    absl::StrAppendFormat(
        &table, "  %-16s %s (%s)\n", place, host.target.host,
        host.target.local ? "this machine" : absl::StrCat("over ", host.target.launcher->name()));
  }
  if (plan.shared_cores > 0) table += ThreadsLine(plan);
  return table;
}

}  // namespace hvd::launcher::plan
