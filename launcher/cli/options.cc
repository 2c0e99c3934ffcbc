#include "launcher/cli/options.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/net/local_network.h"
#include "base/status_macros.h"
#include "launcher/allocation/find_allocation.h"
#include "launcher/cli/config_file.h"
#include "launcher/cli/control_options.h"
#include "launcher/cli/foreign_flags.h"
#include "launcher/cli/runtime_flags.h"
#include "launcher/cli/unavailable_flags.h"
#include "options/elastic_options.h"
#include "options/flag_table.h"

namespace hvd::launcher::cli {
namespace {

constexpr int kMostProcesses = 1 << 20;

std::vector<options::FlagSpec> RefusedFlags() {
  std::vector<options::FlagSpec> refused = UnavailableFlags();
  refused.insert(refused.end(), ForeignFlags().begin(), ForeignFlags().end());
  return refused;
}

// The parser of Horovod's flags into `options_`. For one use.
class Parser {
 public:
  explicit Parser(const Environment& environment)
      : environment_(environment),
        flags_("horovodrun [options] <command> [arguments]", RefusedFlags()) {
    DeclareGeneral();
    DeclareHosts();
    elastic_.Declare(flags_);
    DeclareRestart();
    DeclareRehearsal();
    DeclareOutput();
    runtime_.Declare(flags_);
    DeclareOpposites();
    DeclareFooter();
  }

  absl::StatusOr<Options> Parse(const std::vector<std::string>& args,
                                const std::vector<std::string>& defaults);
  // Checks a single option, independently of the others.
  absl::Status CheckOption(const std::string& argument) {
    return flags_.Parse({argument}).status();
  }
  // The file of --config-file; empty: none. Parses what is needed to find it, and checks no more.
  absl::StatusOr<std::string> FindConfigFile(const std::vector<std::string>& args) {
    ASSIGN_OR_RETURN(const options::FlagTable::Result result, flags_.Parse(args));
    const bool needs_none = result.help || options_.action != Options::Action::kRunJob;
    return needs_none ? "" : options_.config_file;
  }
  std::string Help() const { return flags_.Help(); }

 private:
  void DeclareGeneral();
  void DeclareHosts();
  void DeclareRestart();
  void DeclareRehearsal();
  void DeclareOutput();
  void DeclareOpposites();
  void DeclareFooter();

  // Declares a flag whose value is stored in `target` unchanged.
  void Text(const std::string& names, const std::string& kind, const std::string& help,
            std::string* target) {
    flags_.Value(names, kind, help, [target](const std::string& text) {
      *target = text;
      return absl::OkStatus();
    });
  }

  absl::Status AddNetworks(const std::string& list) {
    for (absl::string_view name : absl::StrSplit(list, ',')) {
      options_.networks.emplace_back(absl::StripAsciiWhitespace(name));
    }
    return net::CheckNetworks(options_.networks);
  }

  absl::Status ReadNumProc(const std::string& text);
  absl::Status ReadStartTimeout();
  absl::Status ReadAllocation();
  absl::Status ReadCommand(std::vector<std::string> words);
  bool NamesHosts() const { return !options_.hosts.empty() || !options_.hostfile.empty(); }
  absl::Status Check() const;
  absl::Status CheckRestart() const;
  absl::Status CheckRehearsal() const;

  const Environment& environment_;
  options::FlagTable flags_;
  options::ElasticFlags elastic_{/*with_discovery=*/true};
  OutputFlags output_;
  RuntimeFlags runtime_;
  Options options_;
  bool has_num_proc_ = false;
  bool has_start_timeout_ = false;
  bool is_module_ = false;
};

// Whether the word sets a variable, as before a command in a shell.
bool IsAssignment(const std::string& word) {
  const size_t end = word.find('=');
  if (end == 0 || end == word.npos || absl::ascii_isdigit(word[0])) return false;
  return std::all_of(word.begin(), word.begin() + end,
                     [](char c) { return absl::ascii_isalnum(c) || c == '_'; });
}

absl::Status ParseStartTimeout(const std::string& source, const std::string& text,
                               Options* options) {
  ASSIGN_OR_RETURN(int64_t seconds, options::ParseInteger(source, text, 1, 7 * 86400));
  options->start_timeout = absl::Seconds(seconds);
  return absl::OkStatus();
}

void Parser::DeclareGeneral() {
  flags_.Group("General");
  flags_.Flag("-v,--version", "Print the version",
              [this] { options_.action = Options::Action::kShowVersion; });
  flags_.Flag("--check-build", "Print this build's features, and why others are missing",
              [this] { options_.action = Options::Action::kCheckBuild; });
  flags_.SingleDash("--check-build", "-cb");
  flags_.Value("--num-proc", "N", "Number of processes, or auto: see below",
               [this](const std::string& text) { return ReadNumProc(text); });
  flags_.SingleDash("--num-proc", "-np");
  flags_.Flag("-m,--module", "The command is a Python module: -m pkg.train is python3 -m pkg.train",
              [this] { is_module_ = true; });
  flags_.Value("--start-timeout", "SECONDS",
               "Time to reach all hosts (HOROVOD_START_TIMEOUT or 30)",
               [this](const std::string& text) {
                 has_start_timeout_ = true;
                 return ParseStartTimeout("--start-timeout", text, &options_);
               });
  flags_.Value("-x", "NAME[=VALUE]", "Set a variable in the workers' environment; repeatable",
               [this](const std::string& text) {
                 ASSIGN_OR_RETURN(Assignment assignment, ParseExport(text, environment_));
                 options_.exports.push_back(std::move(assignment));
                 return absl::OkStatus();
               });
  flags_.Flag("--end-with-stdin", "Stop the job when stdin ends, for programs that start jobs",
              [this] { options_.end_with_stdin = true; });
  flags_.Value("--handover", "FD", "For horovod.run: the socket for the workers' credentials",
               [this](const std::string& text) {
                 ASSIGN_OR_RETURN(options_.handover_fd,
                                  // 0 to 2 are the standard streams.
                                  options::ParseInteger("--handover", text, 3, 1 << 20));
                 return absl::OkStatus();
               });
  Text("--config-file", "FILE", "YAML file with settings of the job; flags take precedence",
       &options_.config_file);
  flags_.Harmless("--disable-cache");  // Nothing is cached.
  flags_.Harmless("--gloo");
  flags_.Harmless("--no-mpi-threads-disable");
}

void Parser::DeclareHosts() {
  flags_.Group("Hosts and network");
  Text("-H,--hosts", "LIST", "host1:2,host2:4 (default: the scheduler's job, or localhost)",
       &options_.hosts);
  Text("--hostfile", "FILE", "Lines of the form: name slots=N", &options_.hostfile);
  flags_.SingleDash("--hostfile", "-hostfile");
  Text("--launcher", "NAME", "ssh, srun, blaunch, pbs_tmrsh, qrsh, kubectl or 'COMMAND {host}'",
       &options_.launcher);
  flags_.Value("-p,--ssh-port", "PORT", "Port of sshd on the hosts (default: ssh's own)",
               [this](const std::string& text) {
                 ASSIGN_OR_RETURN(options_.ssh_port,
                                  options::ParseInteger("--ssh-port", text, 1, 65535));
                 return absl::OkStatus();
               });
  Text("-i,--ssh-identity-file", "FILE", "Private key for ssh (default: ssh's own)",
       &options_.ssh_identity_file);
  flags_.Value("--network-interfaces,--network-interface", "LIST",
               "Only these interfaces or networks: eth0,10.0.0.0/8; repeatable",
               [this](const std::string& list) { return AddNetworks(list); });
}

// In the group of the elastic flags.
void Parser::DeclareRestart() {
  flags_.Flag("--elastic-restart",
              "Start all ranks again in each world, as torchrun: for scripts without hvd.elastic",
              [this] { options_.restarts = true; });
}

// Not among the settings of --config-file: harm needs a word on the command line.
void Parser::DeclareRehearsal() {
  Text("--inject", "FILE", "Rehearse: do the harm of this campaign to the job (docs/rehearsal.md)",
       &options_.inject);
  Text("--inject-report", "FILE", "Write what came of each fault of --inject, as JSON",
       &options_.inject_report);
}

void Parser::DeclareOutput() {
  flags_.Group("Output");
  output_.Declare(flags_);
  Text("--event-log", "FILE", "Write the job's events, one JSON object per line",
       &options_.event_log);
  Text("--metrics", "ADDR:PORT", "Serve /metrics, /healthz and /readyz by plain HTTP here",
       &options_.metrics);
  flags_.Flag("--dry-run", "Only print the plan: hosts, ranks and variables; start nothing",
              [this] { options_.dry_run = true; });
  flags_.Flag("--verbose", "Show plan, addresses and the time of each phase",
              [this] { options_.verbose = true; });
}

void Parser::DeclareOpposites() {
  // One of them on the command line replaces another one of the file.
  flags_.Opposites("--hosts", "--hostfile");
  flags_.Opposites("--hosts", "--host-discovery-script");
  flags_.Opposites("--hostfile", "--host-discovery-script");
}

void Parser::DeclareFooter() {
  std::string text =
      "Examples: horovodrun -np 4 -H host1:2,host2:2 python train.py\n"
      "          horovodrun -np 4 --min-np 2 --host-discovery-script ./hosts.sh python train.py\n"
      "          horovodrun status; horovodrun drain host2; horovodrun stop   (a job that runs on "
      "this machine)\n\n"
      "-np auto: a process for each slot of the hosts given; on this machine alone, for each of "
      "the\n"
      "GPUs that are visible, or without GPUs for each core.\n\n"
      "Horovod's flags that this version refuses, each with the reason:";
  // Beyond the limit, so that the first name begins a line.
  size_t column = 1000;
  for (const options::FlagSpec& flag : UnavailableFlags()) {
    if (column + flag.name.size() > 96) {
      absl::StrAppend(&text, "\n ");
      column = 1;
    }
    absl::StrAppend(&text, " ", flag.name);
    column += flag.name.size() + 1;
  }
  flags_.Footer(text);
}

// Words that other launchers have for what is done otherwise here.
absl::Status CheckForeignCommand(absl::string_view word) {
  const std::pair<const char*, const char*> hints[] = {
      {"kill", "horovodrun stop ends a job; --now, at once"},
      {"logs", "--output-filename FOLDER writes the output of each rank to a file"},
      {"ps", "horovodrun status shows the jobs"},
      {"list", "horovodrun status shows the jobs"},
      {"run", "horovodrun -np 2 python train.py runs a job"},
      {"start", "horovodrun -np 2 python train.py runs a job"},
      {"submit", "horovodrun -np 2 python train.py runs a job"}};
  for (const auto& [foreign, hint] : hints) {
    if (word != foreign) continue;
    return absl::InvalidArgumentError(absl::StrCat("there is no horovodrun ", word, "; ", hint));
  }
  return absl::OkStatus();
}

// Options after the command are the command's.
absl::Status CheckOrder(const std::vector<std::string>& command) {
  for (const std::string& word : command) {
    if (word != "-np" && word != "--num-proc" && !absl::StartsWith(word, "--num-proc=")) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("-np is missing before the command: options that follow ", command[0],
                     " are passed to it; write horovodrun -np 2 ... ", command[0], " ..."));
  }
  return absl::OkStatus();
}

// Python that would read its script from stdin: workers have none, so nothing would run, with exit
// code 0.
absl::Status CheckReadsNoStdin(const std::vector<std::string>& command) {
  const size_t slash = command[0].rfind('/');
  const absl::string_view name = absl::string_view(command[0]).substr(slash + 1);
  const bool reads = absl::StartsWith(name, "python") &&
                     (command.size() == 1 || (command.size() == 2 && command[1] == "-"));
  if (!reads) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name,
                   " would read a script from stdin, which workers don't have; give it a "
                   "file, as in horovodrun -np 2 python train.py"));
}

absl::Status Parser::ReadNumProc(const std::string& text) {
  has_num_proc_ = true;
  options_.auto_num_proc = text == "auto";
  options_.num_proc = 0;
  if (options_.auto_num_proc) return absl::OkStatus();
  int64_t number = 0;
  if (!absl::SimpleAtoi(text, &number)) {
    return absl::InvalidArgumentError(
        absl::StrCat("-np: '", text, "' is neither a whole number nor auto"));
  }
  ASSIGN_OR_RETURN(options_.num_proc, options::ParseInteger("-np", text, 1, kMostProcesses));
  return absl::OkStatus();
}

absl::Status Parser::ReadStartTimeout() {
  const auto variable = environment_.find("HOROVOD_START_TIMEOUT");
  // A variable that is not used is not checked either.
  if (has_start_timeout_ || variable == environment_.end() || variable->second.empty())
    return absl::OkStatus();
  return ParseStartTimeout(variable->first, variable->second, &options_);
}

// Searches for a scheduler's allocation, unless the user has named the hosts. Without -np, or with
// -np auto, the job then has a process for each slot of the allocation.
absl::Status Parser::ReadAllocation() {
  if (NamesHosts() || elastic_.has_script()) return absl::OkStatus();
  ASSIGN_OR_RETURN(options_.allocation,
                   allocation::FindAllocation(environment_, allocation::ReadWholeFile));
  const bool is_given = has_num_proc_ && !options_.auto_num_proc;
  if (!options_.allocation.has_value() || is_given) return absl::OkStatus();
  // 64 bits: the hosts come from a scheduler's variables, so the sum may be anything.
  int64_t slots = 0;
  for (const allocation::AllocatedHost& host : options_.allocation->hosts) slots += host.slots;
  if (slots > kMostProcesses) {
    return absl::InvalidArgumentError(absl::StrCat("-np is missing: ", options_.allocation->job,
                                                   " has ", slots, " ", options_.allocation->slot,
                                                   "s, more than a job here can have processes"));
  }
  has_num_proc_ = true;
  options_.auto_num_proc = false;
  options_.num_proc = static_cast<int>(slots);
  return absl::OkStatus();
}

absl::Status Parser::ReadCommand(std::vector<std::string> words) {
  options_.command = std::move(words);
  if (is_module_ && options_.command.empty()) {
    return absl::InvalidArgumentError(
        "-m needs a module: which shall run? e.g. horovodrun -np 2 -m pkg.train");
  }
  if (is_module_) {
    options_.command.insert(options_.command.begin(), {"python3", "-m"});
  } else if (!options_.command.empty() && IsAssignment(options_.command[0])) {
    // No shell runs the command, but scripts for Horovod, whose shell does, rely on it.
    options_.command.insert(options_.command.begin(), "env");
  }
  return absl::OkStatus();
}

absl::Status Parser::Check() const {
  // Without -np the first word is rather a misspelt command, as in `horovodrun stats`.
  const std::string meant =
      has_num_proc_ || options_.command.empty() ? "" : SimilarControlCommand(options_.command[0]);
  if (!meant.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("-np is missing, to run ", options_.command[0],
                                                   "; did you mean horovodrun ", meant, "?"));
  }
  if (!has_num_proc_ && !options_.command.empty()) {
    RETURN_IF_ERROR(CheckForeignCommand(options_.command[0]));
  }
  if (!has_num_proc_) {
    RETURN_IF_ERROR(CheckOrder(options_.command));
    return absl::InvalidArgumentError(
        "-np is missing: how many processes? e.g. horovodrun -np 2 python train.py");
  }
  if (!options_.hosts.empty() && !options_.hostfile.empty()) {
    return absl::InvalidArgumentError("-H and --hostfile exclude each other; give one of them");
  }
  if (options_.command.empty() || options_.command[0].empty()) {
    return absl::InvalidArgumentError(
        "no command: what shall run? e.g. horovodrun -np 2 python train.py");
  }
  return options_.handover_fd >= 0 ? absl::OkStatus() : CheckReadsNoStdin(options_.command);
}

// What has no meaning with --elastic-restart, and would be ignored.
absl::Status Parser::CheckRestart() const {
  if (!options_.restarts) return absl::OkStatus();
  std::string wrong;
  if (!options_.elastic.has_value()) {
    wrong = "is for elastic jobs: give --min-np, --max-np or --host-discovery-script as well";
  } else if (options_.handover_fd >= 0) {
    wrong = "starts a command, and horovod.run starts a function: leave it out";
  }
  for (const auto& [variable, value] : options_.tunables) {
    if (variable == "HOROVOD_TORCH_ENV" && value == "0") {
      wrong = "needs torchrun's variables, by which the ranks find each other: no --no-torch-env";
    } else if (variable == "HOROVOD_COMMIT_COPY_MBIT") {
      wrong = "has no commits: no --commit-copy-mbit";
    } else if (variable == "HOROVOD_ON_CORRUPTION") {
      wrong = "has no commits that could be compared: no --on-corruption";
    } else if (variable == "HOROVOD_ENCRYPT_DATA" && value == "1") {
      wrong = "leaves the ranks' groups to the script, which nothing encrypts: no --encrypt-data";
    }
  }
  if (wrong.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--elastic-restart ", wrong));
}

absl::Status Parser::CheckRehearsal() const {
  std::string wrong;
  if (options_.inject.empty()) {
    if (options_.inject_report.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError("--inject-report needs --inject, whose report it is");
  }
  if (options_.handover_fd >= 0) {
    wrong = "is for the command line: a program that calls horovod.run can't ask for harm";
  } else if (!options_.elastic.has_value()) {
    wrong =
        "is for elastic jobs: give --min-np, --max-np or --host-discovery-script as well; the "
        "first failure of a static job ends it";
  } else if (options_.restarts) {
    wrong = "needs commits, by which it judges what was lost: no --elastic-restart";
  }
  if (wrong.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--inject ", wrong));
}

absl::StatusOr<Options> Parser::Parse(const std::vector<std::string>& args,
                                      const std::vector<std::string>& defaults) {
  ASSIGN_OR_RETURN(options::FlagTable::Result result, flags_.Parse(args, defaults));
  if (result.help) options_.action = Options::Action::kShowHelp;
  // --help and --version must work whatever is missing beside them.
  if (options_.action != Options::Action::kRunJob) return std::move(options_);
  RETURN_IF_ERROR(ReadCommand(std::move(result.command)));
  RETURN_IF_ERROR(ReadStartTimeout());
  // Without a command nothing would run: that is the message, not one about a scheduler's
  // variables.
  if (!options_.command.empty()) RETURN_IF_ERROR(ReadAllocation());
  RETURN_IF_ERROR(Check());
  ASSIGN_OR_RETURN(options_.elastic,
                   elastic_.Finish(options_.num_proc, NamesHosts(), environment_));
  ASSIGN_OR_RETURN(options_.output, output_.Finish());
  options_.tunables = runtime_.variables();
  RETURN_IF_ERROR(CheckRestart());
  RETURN_IF_ERROR(CheckRehearsal());
  return std::move(options_);
}

// Reads the options from the settings file. Each is checked alone, so that an error can name its
// line.
absl::StatusOr<std::vector<std::string>> DefaultsFrom(const std::string& file,
                                                      const Environment& environment) {
  const absl::StatusOr<std::vector<ConfigFlag>> flags = ReadConfigFile(file);
  if (!flags.ok()) {
    return absl::Status(flags.status().code(),
                        absl::StrCat("--config-file: ", flags.status().message()));
  }
  std::vector<std::string> defaults;
  for (const ConfigFlag& flag : *flags) {
    // A table parses once, so each option has its own.
    const absl::Status status = Parser(environment).CheckOption(flag.argument);
    if (!status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--config-file: ", flag.where, ": ", status.message()));
    }
    defaults.push_back(flag.argument);
  }
  return defaults;
}

}  // namespace

absl::StatusOr<Options> ParseOptions(const std::vector<std::string>& args,
                                     const Environment& environment) {
  // Twice, with a new parser: only the flags say where the file is, and its settings rank below
  // them.
  ASSIGN_OR_RETURN(const std::string file, Parser(environment).FindConfigFile(args));
  if (file.empty()) return Parser(environment).Parse(args, {});
  ASSIGN_OR_RETURN(const std::vector<std::string> defaults, DefaultsFrom(file, environment));
  return Parser(environment).Parse(args, defaults);
}

std::string HelpText() { return Parser({}).Help(); }

}  // namespace hvd::launcher::cli
