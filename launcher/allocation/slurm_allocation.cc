#include "launcher/allocation/slurm_allocation.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "launcher/allocation/excerpt.h"
#include "launcher/allocation/hostlist.h"

namespace hvd::launcher::allocation {
namespace {

constexpr int kMostNodes = 1 << 16;
constexpr int kMostCount = 1 << 14;  // of tasks or GPUs of a node
constexpr char kTasksPerNode[] = "SLURM_TASKS_PER_NODE";

std::string ValueOf(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

bool ParseCount(absl::string_view text, int* count) {
  return absl::SimpleAtoi(text, count) && *count > 0 && *count <= kMostCount;
}

absl::Status Broken(const std::string& name, const std::string& value) {
  return absl::InvalidArgumentError(
      absl::StrCat("can't make sense of ", name, "='", Excerpt(value),
                   "', which Slurm sets; give -np and the job's hosts with -H"));
}

// The number of GPUs in "4", "a100:4" or "a100:2,v100:2"; 0 if there is none.
int CountGpus(const std::string& text) {
  int all = 0;
  for (const absl::string_view entry : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    int count = 0;
    if (ParseCount(entry.substr(entry.rfind(':') + 1), &count))
      all = std::min(all + count, kMostNodes);
  }
  return all;
}

// The tasks of each node; empty if the user has not requested tasks, because Slurm's variable then
// counts CPUs.
absl::StatusOr<std::vector<int>> ReadTasks(const Environment& environment, size_t nodes) {
  const bool asked = environment.count("SLURM_NTASKS") > 0 ||
                     environment.count("SLURM_NPROCS") > 0 ||
                     environment.count("SLURM_NTASKS_PER_NODE") > 0;
  const std::string text = ValueOf(environment, kTasksPerNode);
  if (!asked || text.empty()) return std::vector<int>();
  ASSIGN_OR_RETURN(std::vector<int> tasks, ParseNodeCounts(text));
  if (tasks.size() != nodes) return Broken(kTasksPerNode, text);
  return tasks;
}

// The GPUs of each node. Slurm's variables give the number of the first node only. All nodes are
// assumed to have as many, unless that contradicts the total that the user has requested.
absl::StatusOr<std::vector<int>> ReadGpus(const Environment& environment, size_t nodes,
                                          const std::vector<int>& tasks) {
  const int per_task = CountGpus(ValueOf(environment, "SLURM_GPUS_PER_TASK"));
  if (per_task > 0 && !tasks.empty()) {
    std::vector<int> gpus;
    for (const int count : tasks)
      gpus.push_back(std::min<int64_t>(int64_t{count} * per_task, kMostNodes));
    return gpus;
  }
  int here = CountGpus(ValueOf(environment, "SLURM_GPUS_ON_NODE"));
  if (here == 0) here = CountGpus(ValueOf(environment, "SLURM_GPUS_PER_NODE"));
  const int all = CountGpus(ValueOf(environment, "SLURM_GPUS"));
  // With one node there is only one way to spread them.
  if (here == 0 && nodes == 1) here = all;
  if (all > 0 && static_cast<int64_t>(here) * static_cast<int64_t>(nodes) != all) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Slurm does not say how this job's ", all, " GPUs are spread over its ", nodes,
        " nodes; ask sbatch for --gpus-per-node in place of --gpus, or give -np and the hosts with "
        "-H"));
  }
  return std::vector<int>(nodes, here);
}

bool IsOneForEachNode(const std::vector<int>& tasks) {
  return std::all_of(tasks.begin(), tasks.end(), [](int count) { return count == 1; });
}

bool HasTwins(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  return std::adjacent_find(names.begin(), names.end()) != names.end();
}

// Fails if srun has started this program as several tasks. A terminal (srun --pty) is for the first
// task only, so it is accepted.
absl::Status CheckStep(const Environment& environment) {
  int tasks = 0;
  const bool in_step = ParseCount(ValueOf(environment, "SLURM_STEP_NUM_TASKS"), &tasks);
  if (!in_step || tasks == 1 || environment.count("SLURM_PTY_PORT") > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("srun has started horovodrun ", tasks,
                   " times; it is to run once, in the batch script "
                   "without srun, and starts all the processes itself"));
}

// Fails for a heterogeneous job: Slurm's variables then describe only the first component, or none.
absl::Status CheckComponents(const Environment& environment) {
  int components = 0;
  if (!ParseCount(ValueOf(environment, "SLURM_HET_SIZE"), &components) || components == 1) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "this job of Slurm is heterogeneous: which of its ", components,
      " components are to train? Give -np and their hosts with -H, or start a process for each "
      "task without horovodrun: srun --het-group=0-",
      components - 1, " python train.py"));
}

}  // namespace

absl::StatusOr<std::vector<int>> ParseNodeCounts(absl::string_view text) {
  std::vector<int> counts;
  for (const absl::string_view entry : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(entry, absl::MaxSplits("(x", 1));
    absl::string_view repeated = parts.second;
    int count = 0;
    int times = 1;
    const bool repeats = parts.first.size() < entry.size();
    if (!ParseCount(parts.first, &count) ||
        (repeats && !(absl::ConsumeSuffix(&repeated, ")") && ParseCount(repeated, &times))) ||
        times > kMostNodes || counts.size() > kMostNodes) {
      return Broken(kTasksPerNode, std::string(text));
    }
    counts.insert(counts.end(), times, count);
  }
  return counts;
}

absl::StatusOr<Allocation> ReadSlurmAllocation(const Environment& environment) {
  RETURN_IF_ERROR(CheckStep(environment));
  RETURN_IF_ERROR(CheckComponents(environment));
  const std::string list = ValueOf(environment, "SLURM_JOB_NODELIST");
  const auto names = ExpandHostlist(list);
  if (!names.ok() || names->empty() || HasTwins(*names)) return Broken("SLURM_JOB_NODELIST", list);
  ASSIGN_OR_RETURN(const std::vector<int> tasks, ReadTasks(environment, names->size()));
  ASSIGN_OR_RETURN(const std::vector<int> gpus, ReadGpus(environment, names->size(), tasks));
  const bool has_gpus = gpus[0] > 0;
  // One task per node on nodes with GPUs is the usual request for a launcher that starts the
  // workers itself, so the GPUs count.
  const bool by_task = !tasks.empty() && !(has_gpus && IsOneForEachNode(tasks));
  Allocation allocation;
  const std::string id = ValueOf(environment, "SLURM_JOB_ID");
  allocation.job = id.empty() ? "a job of Slurm" : absl::StrCat("Slurm's job ", Excerpt(id));
  allocation.source = absl::StrCat("SLURM_JOB_NODELIST='", Excerpt(list), "'");
  allocation.slot = by_task ? "task" : has_gpus ? "GPU" : "node";
  allocation.launcher = "srun";
  for (size_t i = 0; i < names->size(); ++i) {
    const int slots = by_task ? tasks[i] : has_gpus ? gpus[i] : 1;
    allocation.hosts.push_back({(*names)[i], slots, gpus[i]});
  }
  return allocation;
}

}  // namespace hvd::launcher::allocation
