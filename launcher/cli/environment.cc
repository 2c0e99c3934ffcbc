#include "launcher/cli/environment.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/text/json.h"
#include "rendezvous/placement/placement_variables.h"
#include "rendezvous/placement/torch_variables.h"

namespace hvd::launcher::cli {
namespace {

// Whether the agent sets this variable for each worker. A launcher that itself runs inside a worker
// of another job must not pass on that job's values. Ranks and sizes are asked of the function that
// sets them, so that none is forgotten here.
bool IsPerWorker(const std::string& name) {
  return name == "HOROVOD_AGENT_SOCKET" || name == "HOROVOD_WORKER_ID" ||
         name == "HOROVOD_HOSTNAME" || name == "HOROVOD_HOST_ADDRESS" ||
         name == "HOROVOD_WORKER_WORD" ||
         rendezvous::placement::PlacementVariables({}).count(name) > 0;
}

// The same for the variables of torchrun's workers and of this project's workers for
// torch.distributed.
bool IsOfTorchWorker(const std::string& name) {
  return rendezvous::placement::TorchVariables({}, {"", 0, 1}).count(name) > 0 ||
         name == "MASTER_ADDR" || name == "MASTER_PORT" || name == "ROLE_NAME" ||
         absl::StartsWith(name, "TORCHELASTIC_");
}

// Whether the variable names the network interface of an outer job, inside which this launcher
// runs. That job's agent has set it, not the user, and this job may use another interface.
bool IsInterfaceOfOuterJob(const std::string& name, const std::string& value,
                           const Environment& launcher) {
  // The value is compared: one that differs from the agent's is the user's own, and stays.
  if (name != "GLOO_SOCKET_IFNAME" && name != "NCCL_SOCKET_IFNAME") return false;
  const auto outer = launcher.find("HOROVOD_GLOO_IFACE");
  return launcher.count("HOROVOD_WORKER_ID") > 0 && outer != launcher.end() &&
         outer->second == value;
}

// This machine's choice of devices, and what belongs to one process. Functions of bash are passed
// on, other than with Horovod: scripts of clusters call `module`.
bool StaysHere(const std::string& name) {
  if (absl::EndsWith(name, "CUDA_VISIBLE_DEVICES")) return true;
  if (!text::IsUtf8(name)) return true;  // what programs can't ask for, messages can't carry
  if (name == "OLDPWD" || name == "_HOROVOD_SECRET_KEY") return true;
  return IsPerWorker(name);
}

bool IsVariableName(const std::string& name) {
  return !name.empty() && !absl::ascii_isdigit(name[0]) &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return absl::ascii_isalnum(c) || c == '_'; });
}

}  // namespace

absl::StatusOr<Assignment> ParseExport(const std::string& text, const Environment& launcher) {
  const size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  if (!IsVariableName(name)) {
    return absl::InvalidArgumentError(
        absl::StrCat("-x ", text, ": '", name, "' is not a variable's name"));
  }
  if (equals != std::string::npos) return Assignment(name, text.substr(equals + 1));
  const auto own = launcher.find(name);
  if (own == launcher.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("-x ", name, ": no such variable here; -x ", name, "=VALUE sets one"));
  }
  return Assignment(*own);
}

Environment WorkerEnvironment(const Environment& launcher, const std::vector<Assignment>& tunables,
                              const std::vector<Assignment>& exports) {
  Environment result;
  // RANK alone may be a variable of the user's.
  const bool in_torch_worker =
      launcher.count("RANK") > 0 && launcher.count("LOCAL_RANK") + launcher.count("WORLD_SIZE") > 0;
  for (const auto& [name, value] : launcher) {
    if (in_torch_worker && IsOfTorchWorker(name)) continue;
    if (IsInterfaceOfOuterJob(name, value, launcher)) continue;
    if (!StaysHere(name)) result[name] = value;
  }
  // Python buffers what it writes to a pipe: output would come late, and that before a crash never.
  result["PYTHONUNBUFFERED"] = "1";
  // As Horovod's launcher does, for scripts that look at them.
  result["HOROVOD_CONTROLLER"] = "gloo";
  // In ascending order of priority: the launcher's environment, flags, -x.
  for (const auto& [name, value] : tunables) result[name] = value;
  for (const auto& [name, value] : exports) result[name] = value;
  // Empty, it would count as set, and libraries would use all cores in every worker.
  const auto threads = result.find("OMP_NUM_THREADS");
  if (threads != result.end() && threads->second.empty()) result.erase(threads);
  return result;
}

}  // namespace hvd::launcher::cli
