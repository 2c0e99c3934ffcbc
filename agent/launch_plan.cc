#include "agent/launch_plan.h"

#include <sys/stat.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/protocol/agent_protocol.h"
#include "base/net/address.h"
#include "base/os/process.h"
#include "base/os/usable_cores.h"
#include "base/status_macros.h"
#include "base/text/names.h"
#include "base/text/shortened.h"
#include "base/version.h"
#include "rendezvous/placement/placement_variables.h"
#include "rendezvous/placement/torch_variables.h"
#include "rendezvous/transport/placement_message.h"

namespace hvd::agent {
namespace {

constexpr char kDevices[] = "CUDA_VISIBLE_DEVICES";
constexpr char kDefaultPath[] = "/usr/local/bin:/usr/bin:/bin";

bool IsDirectory(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

std::string ValueOr(const std::map<std::string, std::string>& environment, const std::string& name,
                    const std::string& otherwise) {
  const auto entry = environment.find(name);
  return entry == environment.end() ? otherwise : entry->second;
}

void ChooseDirectory(const std::string& wanted, LaunchPlan* plan) {
  plan->working_directory = wanted;
  if (IsDirectory(wanted)) return;
  const std::string home = ValueOr(plan->environment, "HOME", "/");
  plan->working_directory = IsDirectory(home) ? home : "/";
  plan->warning = absl::StrCat(plan->host, ": there is no directory ", wanted,
                               " here; workers start in ", plan->working_directory);
}

// Sets OMP_NUM_THREADS to the worker's share of the cores: with one thread per core in every
// worker, the workers would slow each other down. A value from the user takes precedence (emplace).
void ShareCores(int cores, int workers, std::map<std::string, std::string>* environment) {
  if (cores == 0 || ValueOr(*environment, "HOROVOD_OMP_THREADS", "") == "0") return;
  environment->emplace("OMP_NUM_THREADS", absl::StrCat(os::ThreadsOfWorker(cores, workers)));
}

// Sets a variable that is missing or empty.
void SetUnlessChosen(const std::string& name, const std::string& value,
                     std::map<std::string, std::string>* environment) {
  std::string& kept = (*environment)[name];
  if (kept.empty()) kept = value;
}

// Sets torchrun's variables. A store that the user has chosen (MASTER_ADDR, MASTER_PORT) is kept.
// Libraries such as Lightning take TORCHELASTIC_RUN_ID as a sign to prefer these variables to those
// of a scheduler's job, by which all workers would be task 0.
void SetTorchVariables(const rendezvous::placement::Placement& placement,
                       const rendezvous::placement::TorchGroup& group, const std::string& job_id,
                       std::map<std::string, std::string>* environment) {
  if (ValueOr(*environment, "HOROVOD_TORCH_ENV", "") == "0") return;
  if (group.groups > 0) {
    // The prefix "horovod-" is read by horovod.common._origin, to recognise a child process that
    // has only torch's variables.
    SetUnlessChosen("TORCHELASTIC_RUN_ID", absl::StrCat("horovod-", job_id), environment);
  }
  for (const auto& [name, value] : rendezvous::placement::TorchVariables(placement, group)) {
    (*environment)[name] = value;
  }
  if (group.store_address.empty()) return;
  const net::HostPort store = net::SplitHostPort(group.store_address);
  SetUnlessChosen("MASTER_ADDR", store.host, environment);
  SetUnlessChosen("MASTER_PORT", store.port, environment);
}

// Makes the agent's own program the worker, which runs the command.
absl::Status RunByRestarter(LaunchPlan* plan) {
  std::error_code error;
  const std::string own = std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (error) {
    return absl::InternalError(
        absl::StrCat(plan->host, ": /proc/self/exe can't be read: ", error.message()));
  }
  plan->argv.insert(plan->argv.begin(),
                    {protocol::kAgentProgram, protocol::kRestarterMode, plan->file});
  plan->file = own;
  return absl::OkStatus();
}

// What is probably meant by a command that can't be executed.
std::string Hint(const LaunchPlan& plan) {
  const std::string& name = plan.argv[0];
  if (!absl::EndsWith(name, ".py")) return "";
  return absl::StrCat("; to run a Python script, write: python ", text::OnOneLine(name));
}

}  // namespace

absl::StatusOr<LaunchPlan> MakeLaunchPlan(const pb::AgentBootstrap& bootstrap,
                                          const Environment& own) {
  LaunchPlan plan;
  plan.host = bootstrap.host();
  if (bootstrap.version() != kVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat(plan.host, ": horovod-agent here is version ", kVersion, ", horovodrun is ",
                     bootstrap.version(), "; install the same version of horovod on every host"));
  }
  const pb::JobCommand& command = bootstrap.command();
  plan.argv.assign(command.argv().begin(), command.argv().end());
  plan.input = command.input();
  plan.environment.insert(command.environment().begin(), command.environment().end());
  // The GPUs are this host's matter: a scheduler sets the variable on each host. insert() keeps a
  // value that the launcher was given for all hosts.
  const auto devices = own.find(kDevices);
  if (devices != own.end()) plan.environment.insert(*devices);
  if (plan.argv.empty() || plan.argv[0].empty()) {
    return absl::InvalidArgumentError(absl::StrCat(plan.host, ": the job has no command"));
  }
  ChooseDirectory(command.working_directory(), &plan);

  const std::string path = ValueOr(plan.environment, "PATH", kDefaultPath);
  // Found now and not at the first start, so that a missing command on any host ends the job before
  // something runs.
  absl::StatusOr<std::string> file = os::FindExecutable(plan.argv[0], path, plan.working_directory);
  if (!file.ok()) {
    const std::string where = absl::StrContains(plan.argv[0], '/')
                                  ? absl::StrCat(" (in ", plan.working_directory, ")")
                                  : absl::StrCat(" (PATH there: ", path, ")");
    return absl::Status(file.status().code(),
                        absl::StrCat(plan.host, ": ",
                                     text::Shortened(text::OnOneLine(file.status().message()), 300),
                                     where, Hint(plan)));
  }
  plan.file = *std::move(file);
  if (command.restarts()) RETURN_IF_ERROR(RunByRestarter(&plan));
  return plan;
}

LaunchPlan MakeAdoptionPlan(const pb::AgentBootstrap& bootstrap) {
  LaunchPlan plan;
  plan.host = bootstrap.host();
  const auto& variables = bootstrap.command().environment();
  plan.environment.insert(variables.begin(), variables.end());
  return plan;
}

std::map<std::string, std::string> WorkerEnvironment(const LaunchPlan& plan,
                                                     const pb::StartWorker& start,
                                                     const WorkerPlace& place) {
  std::map<std::string, std::string> environment = plan.environment;
  const net::HostPort daemon = net::SplitHostPort(place.daemon_address);
  const std::pair<const char*, std::string> own[] = {
      {"HOROVOD_HOSTNAME", plan.host},
      {"HOROVOD_HOST_ADDRESS", place.own_address},
      {"HOROVOD_GLOO_RENDEZVOUS_ADDR", daemon.host},
      {"HOROVOD_GLOO_RENDEZVOUS_PORT", daemon.port},
      {"HOROVOD_CONTROLLER", "gloo"},
      {"HOROVOD_WORKER_ID", absl::StrCat(start.worker_id())},
      {"HOROVOD_AGENT_SOCKET", place.agent_socket},
      {"HOROVOD_WORKER_WORD", place.word},
  };
  for (const auto& [name, value] : own) environment[name] = value;
  const auto placement = rendezvous::transport::FromMessage(start.placement());
  for (const auto& [name, value] : rendezvous::placement::PlacementVariables(placement)) {
    environment[name] = value;
  }
  SetTorchVariables(placement, rendezvous::transport::FromMessage(start.torch()), place.job_id,
                    &environment);
  const int on_machine =
      start.most_on_machine() > 0 ? start.most_on_machine() : start.placement().local_size();
  const bool share_with_own = place.own_workers > 0 && place.own_workers < on_machine;
  ShareCores(place.cores, share_with_own ? place.own_workers : on_machine, &environment);
  if (!place.interface.empty()) {
    environment["HOROVOD_GLOO_IFACE"] = place.interface;
    // Values from the user are kept. GLOO_SOCKET_IFNAME is for torch.distributed.
    environment.emplace("NCCL_SOCKET_IFNAME", place.interface);
    environment.emplace("GLOO_SOCKET_IFNAME", place.interface);
  }
  if (place.elastic) {
    environment["HOROVOD_ELASTIC"] = "1";
  } else {
    // An outer job, in which this job was started, may have set it.
    environment.erase("HOROVOD_ELASTIC");
  }
  return environment;
}

std::vector<std::string> AsEntries(const std::map<std::string, std::string>& variables) {
  std::vector<std::string> entries;
  for (const auto& [name, value] : variables) entries.push_back(absl::StrCat(name, "=", value));
  return entries;
}

}  // namespace hvd::agent
