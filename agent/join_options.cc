#include "agent/join_options.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agent/protocol/agent_protocol.h"
#include "base/status_macros.h"
#include "base/text/names.h"
#include "base/version.h"
#include "options/daemon_addresses.h"
#include "options/flag_table.h"

namespace hvd::agent {
namespace {

constexpr int64_t kMostSlots = 1 << 16;
constexpr int64_t kWeek = 7 * 86400;

constexpr int64_t kMostProcesses = 1 << 22;  // the kernel's maximum of process numbers

constexpr char kDescription[] =
    "Runs a job's workers on this host. horovodrun starts it on each host by itself (--stdio). "
    "With\n"
    "--join it takes part in the job of a horovod-rendezvousd, without a launcher.";

constexpr char kFooter[] =
    "Workers' output goes to stdout and stderr, with the rank in front. The exit code is the "
    "job's.\n"
    "In an elastic job SIGTERM or SIGHUP drains this host: its workers leave at the next commit,\n"
    "no step is lost, and the agent exits with 0. A second SIGTERM ends the wait for that commit,\n"
    "a third one or Ctrl-C the agent itself.";

// The parser of one command line. For one use.
class Parser {
 public:
  Parser()
      : flags_(absl::StrCat(protocol::kAgentProgram,
                            " --join HOST:PORT --token-file FILE [options] -- command..."),
               {}) {
    flags_.Description(kDescription);
    flags_.Group("Options");
    DeclareJob();
    DeclareHost();
    flags_.Footer(kFooter);
  }

  absl::StatusOr<JoinCommand> Parse(const std::vector<std::string>& args) {
    ASSIGN_OR_RETURN(const options::FlagTable::Result result, flags_.Parse(args));
    // Before the checks: who asks for help need not give the required options.
    if (result.help) return JoinCommand{std::nullopt, flags_.Help(), 0};
    if (version_) {
      return JoinCommand{std::nullopt, absl::StrCat(protocol::kAgentProgram, " ", kVersion, "\n"),
                         0};
    }
    if (options_.daemons.empty()) return Missing("--join", "give the daemon's HOST:PORT");
    if (options_.token_file.empty())
      return Missing("--token-file", "give the file that horovod-rendezvousd has written");
    options_.command = result.command;
    if (options_.adopt.has_value()) {
      RETURN_IF_ERROR(CheckAdoption());
    } else if (options_.command.empty() || options_.command[0].empty()) {
      return absl::InvalidArgumentError("no command to run; it comes last, after --");
    }
    return JoinCommand{std::move(options_), "", 0};
  }

 private:
  static absl::Status Missing(const char* name, const char* hint) {
    return absl::InvalidArgumentError(absl::StrCat(name, " is missing: ", hint));
  }

  absl::Status CheckAdoption() const {
    const char* const wrong =
        !options_.command.empty()       ? "there is no command: the process runs already"
        : options_.slots != 1           ? "--slots is 1: the process is the only worker"
        : options_.restarts             ? "--elastic-restart starts a command, and there is none"
        : options_.end_with_stdin       ? "stdin is the process's: no --end-with-stdin"
        : options_.worker_stdin.empty() ? nullptr
                                        : "the process has a stdin: no --worker-stdin";
    if (wrong == nullptr) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("--adopt ", *options_.adopt, ": ", wrong));
  }

  void Text(const std::string& name, const std::string& kind, const std::string& help,
            std::string* target) {
    flags_.Value(name, kind, help, [target](const std::string& text) {
      *target = text;
      return absl::OkStatus();
    });
  }

  void Time(const std::string& name, const std::string& help, double low, absl::Duration* target) {
    flags_.Value(name, "SECONDS", help, [name, low, target](const std::string& text) {
      ASSIGN_OR_RETURN(*target, options::ParseSeconds(name, text, low, kWeek));
      return absl::OkStatus();
    });
  }

  void DeclareJob() {
    flags_.Value("--join", "HOST:PORT,...",
                 "The addresses of the job's horovod-rendezvousd: the leader and the standbys",
                 [this](const std::string& text) {
                   ASSIGN_OR_RETURN(options_.daemons, options::ParseDaemons("--join", text));
                   return absl::OkStatus();
                 });
    Text("--token-file", "FILE", "The secret file that horovod-rendezvousd has written",
         &options_.token_file);
    Time("--start-timeout", "Time to reach the daemon (60)", 1, &options_.start_timeout);
    flags_.Flag("--version", "Print the version", [this] { version_ = true; });
  }

  void DeclareHost() {
    flags_.Value("--slots", "N", "Number of workers on this host (1)",
                 [this](const std::string& text) {
                   ASSIGN_OR_RETURN(const int64_t slots,
                                    options::ParseInteger("--slots", text, 1, kMostSlots));
                   options_.slots = static_cast<uint32_t>(slots);
                   return absl::OkStatus();
                 });
    flags_.Value("--host", "NAME", "This host's name in the job (SLURMD_NODENAME, or its own)",
                 [this](const std::string& text) {
                   options_.host = text;
                   return text::CheckName("--host", text);
                 });
    flags_.Value("--machine", "NAME",
                 "Agents with the same NAME share local ranks, GPUs, cores (detected)",
                 [this](const std::string& text) {
                   options_.machine = text;
                   return text::CheckName("--machine", text);
                 });
    Text("--worker-stdin", "FILE", "The contents of each worker's stdin (empty)",
         &options_.worker_stdin);
    flags_.Flag("--elastic-restart",
                "Start the command again in each world: for scripts that do not know Horovod",
                [this] { options_.restarts = true; });
    flags_.Flag("--end-with-parent", "Stop the workers and exit when the parent process has ended",
                [this] { options_.end_with_parent = true; });
    flags_.Flag("--end-with-stdin", "Stop the workers and exit at the end of stdin, a pipe",
                [this] { options_.end_with_stdin = true; });
    flags_.Value("--adopt", "PID", "The process that started this agent is the only worker",
                 [this](const std::string& text) {
                   ASSIGN_OR_RETURN(options_.adopt,
                                    options::ParseInteger("--adopt", text, 1, kMostProcesses));
                   return absl::OkStatus();
                 });
    Time("--grace", "Grace period of a drain; 0: the job's own (30)", 0, &options_.grace);
    flags_.Value("--network-interfaces", "LIST", "Only these between workers: eth0,10.0.0.0/8",
                 [this](const std::string& text) {
                   options_.networks = absl::StrSplit(text, ',');
                   return absl::OkStatus();
                 });
  }

  options::FlagTable flags_;
  JoinOptions options_;
  bool version_ = false;
};

}  // namespace

JoinCommand ParseJoinCommand(int argc, const char* const* argv) {
  absl::StatusOr<JoinCommand> command = Parser().Parse({argv + 1, argv + argc});
  if (command.ok()) return *std::move(command);
  return {std::nullopt,
          absl::StrCat(protocol::kAgentProgram, ": ", text::OnOneLine(command.status().message()),
                       "\n"),
          2};
}

}  // namespace hvd::agent
