#include "launcher/spawn/command_launcher.h"

#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "launcher/spawn/agent_command.h"

namespace hvd::launcher::spawn {
namespace {

constexpr char kHost[] = "{host}";
// A word that contains this is omitted for a host whose number of GPUs is not known.
constexpr char kGpus[] = "{gpus}";

constexpr Complaint kSrunComplaints[] = {
    {"unrecognized option '--overlap'",
     "this srun is older than Slurm 20.11; name it with the options that it has: --launcher 'srun "
     "-N1 -n1 --nodelist={host}'"},
    {"Requested node configuration is not available", "this Slurm job has no such node"},
    {"Invalid node name", "Slurm knows no such node"},
    {"is down", "Slurm has this node down"},
    {"allocation has been revoked", "this Slurm job has ended"},
    {"already completing or completed", "this Slurm job has ended"},
    {"Invalid job id", "this Slurm job has ended, or there was none"},
    {"Invalid generic resource",
     "the job has fewer GPUs on this node than on others; give --gpus-per-node to sbatch"},
    {"Unable to contact slurm controller", "Slurm's controller does not answer"},
    {"Communication connection failure", "Slurm can't reach this node"},
};

constexpr Complaint kKubectlComplaints[] = {
    {"NotFound", "there is no such pod in this namespace"},
    {"Forbidden",
     "this account may not run commands in pods; it needs the right to create "
     "pods/exec"},
    {"container not found", "the pod's container is not running"},
    {"does not have a host assigned", "the pod is not running yet"},
};

// Starts one agent on the node with all resources that the job has there, regardless of how the job
// divides them among its tasks. Without binding to cores, because all workers share the agent's
// cores.
const std::vector<std::string>& SrunWords() {
  static const auto* const words =
      new std::vector<std::string>{"srun",       "--overlap",           "--nodes=1",
                                   "--ntasks=1", "--ntasks-per-node=1", "--nodelist={host}",
                                   "--mem=0",    "--gres=gpu:{gpus}",   "--cpu-bind=quiet,none",
                                   "--mpi=none", "--export=ALL"};
  return *words;
}

// Variables that sbatch and salloc set, and that srun reads as if they were its options. They
// describe one task of the job, or all of its nodes, and would restrict the agent; so srun does not
// get them.
const std::vector<std::string>& SrunVariables() {
  static const auto* const names = new std::vector<std::string>{
      "SLURM_CPUS_PER_GPU",
      "SLURM_CPUS_PER_TASK",
      "SLURM_CPU_BIND",
      "SLURM_DISTRIBUTION",
      "SLURM_EXACT",
      "SLURM_EXCLUSIVE",
      "SLURM_GPUS",
      "SLURM_GPUS_PER_NODE",
      "SLURM_GPUS_PER_SOCKET",
      "SLURM_GPUS_PER_TASK",
      "SLURM_GPU_BIND",
      "SLURM_GRES",
      "SLURM_HINT",
      "SLURM_IMMEDIATE",
      "SLURM_LABELIO",
      "SLURM_MEM_PER_CPU",
      "SLURM_MEM_PER_GPU",
      "SLURM_MEM_PER_NODE",
      "SLURM_NTASKS_PER_CORE",
      "SLURM_NTASKS_PER_GPU",
      "SLURM_NTASKS_PER_SOCKET",
      "SLURM_NTASKS_PER_TRES",
      "SLURM_STDERRMODE",
      "SLURM_STDINMODE",
      "SLURM_STDOUTMODE",
      "SLURM_STEP_GRES",
      "SLURM_THREADS",
      "SLURM_THREADS_PER_CORE",
      "SLURM_TRES_PER_TASK",
      "SLURM_UNBUFFEREDIO",
      "SRUN_CPUS_PER_TASK",
  };
  return *names;
}

std::optional<CommandTemplate> KnownTemplate(const std::string& name) {
  using Rest = CommandTemplate::Rest;
  if (name == "srun") {
    return CommandTemplate{SrunWords(), Rest::kAsItIs, SrunVariables(), kSrunComplaints};
  }
  if (name == "kubectl") {
    return CommandTemplate{
        {"kubectl", "exec", "-i", kHost, "--"}, Rest::kAsItIs, {}, kKubectlComplaints};
  }
  if (name == "blaunch" || name == "pbs_tmrsh") return CommandTemplate{{name, kHost}};
  if (name == "qrsh") return CommandTemplate{{name, "-inherit", kHost}};
  return std::nullopt;
}

absl::Status Invalid(const std::string& text, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("--launcher ", text, ": ", why));
}

// Splits a command into words by a shell's rules for blanks, quotes and backslashes. Returns an
// empty list if a quote is not closed.
std::vector<std::string> SplitWords(absl::string_view text) {
  std::vector<std::string> words;
  bool in_word = false;
  char quote = '\0';
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (quote == '\0' && absl::ascii_isspace(c)) {
      in_word = false;
      continue;
    }
    if (!in_word) words.emplace_back();
    in_word = true;
    if (c == quote) {
      quote = '\0';
    } else if (quote == '\0' && (c == '\'' || c == '"')) {
      quote = c;
    } else {
      if (c == '\\' && quote != '\'' && i + 1 < text.size()) c = text[++i];
      words.back() += c;
    }
  }
  return quote == '\0' ? words : std::vector<std::string>();
}

}  // namespace

absl::StatusOr<CommandTemplate> FindCommandTemplate(const std::string& text) {
  if (auto known = KnownTemplate(std::string(absl::StripAsciiWhitespace(text))); known.has_value())
    return *std::move(known);
  if (!absl::StrContains(text, kHost)) {
    return Invalid(text,
                   "there is ssh, srun, blaunch, pbs_tmrsh, qrsh and kubectl, or any command with "
                   "{host} in it, such as 'docker exec -i {host}'");
  }
  // Refused, not replaced: a word would be left out on hosts whose GPUs are not known, which a
  // user's command does not expect.
  if (absl::StrContains(text, kGpus)) return Invalid(text, "only {host} is replaced, not {gpus}");
  CommandTemplate command;
  command.words = SplitWords(text);
  if (command.words.empty()) return Invalid(text, "a quote is not closed");
  // The first word is also the launcher's name in messages, and the same for all hosts.
  if (command.words[0].empty() || absl::StrContains(command.words[0], kHost)) {
    return Invalid(text, "the first word must be a command, such as in 'docker exec -i {host}'");
  }
  return command;
}

std::string CommandLauncher::name() const {
  return command_.words[0].substr(command_.words[0].rfind('/') + 1);
}

AgentInvocation CommandLauncher::Command(const std::string& host,
                                         const std::string& install_directory) const {
  AgentInvocation invocation;
  invocation.file = command_.words[0];
  invocation.without = command_.without;
  const auto gpus = gpus_.find(host);
  const bool knows_gpus = gpus != gpus_.end() && gpus->second > 0;
  for (const std::string& word : command_.words) {
    if (absl::StrContains(word, kGpus) && !knows_gpus) continue;
    invocation.argv.push_back(absl::StrReplaceAll(
        word, {{kHost, host}, {kGpus, absl::StrCat(knows_gpus ? gpus->second : 0)}}));
  }
  const std::vector<std::string> agent = command_.rest == CommandTemplate::Rest::kAsItIs
                                             ? AgentCommandOfShell(install_directory)
                                             : AgentCommandOfPlainWords(install_directory, path_);
  invocation.argv.insert(invocation.argv.end(), agent.begin(), agent.end());
  return invocation;
}

}  // namespace hvd::launcher::spawn
