#include "launcher/cli/control_options.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "options/command_line.h"
#include "options/daemon_addresses.h"
#include "options/flag_table.h"

namespace hvd::launcher::cli {
namespace {

constexpr char kDrain[] = "drain";

// The parser of one command line. For one use.
class Parser {
 public:
  explicit Parser(const std::string& action)
      : drain_(action == kDrain),
        flags_(absl::StrCat("horovodrun ", action, drain_ ? " HOST" : "", " [options]"), {}) {
    options_.action = drain_ ? ControlOptions::Action::kDrain : ControlOptions::Action::kStatus;
    flags_.Group("Options");
    Text("--job", "ID", "The job, by its id or a prefix of it, if several run on this machine",
         &options_.job);
    flags_.Value(
        "--connect", "HOST:PORT,...",
        "The daemon of a job elsewhere, or the leader and the standbys; needs --token-file",
        [this](const std::string& text) {
          ASSIGN_OR_RETURN(options_.connect, options::ParseDaemons("--connect", text));
          return absl::OkStatus();
        });
    Text("--token-file", "FILE", "The token file that horovod-rendezvousd has written",
         &options_.token_file);
    if (drain_) {
      // From 1: a grace of 0 stands for the job's own.
      flags_.Value("--grace", "SECONDS", "Grace period for the host (the job's own)",
                   [this](const std::string& text) {
                     ASSIGN_OR_RETURN(int64_t seconds,
                                      options::ParseInteger("--grace", text, 1, 7 * 86400));
                     options_.grace = absl::Seconds(seconds);
                     return absl::OkStatus();
                   });
    }
    flags_.Footer(drain_ ? "The host's workers commit together with all others, leave, and exit "
                           "with 0; no step is lost.\nThe job continues without them."
                         : "State, hosts and workers of a job that runs.");
  }

  absl::StatusOr<ControlOptions> Parse(std::vector<std::string> args) {
    // The host may come before or after the options.
    if (drain_ && !args.empty() && args[0][0] != '-') {
      options_.host = args[0];
      args.erase(args.begin());
    }
    ASSIGN_OR_RETURN(options::FlagTable::Result result, flags_.Parse(args));
    if (result.help) {
      options_.action = ControlOptions::Action::kShowHelp;
      return std::move(options_);
    }
    // The table takes the first word and all that follows for a command.
    if (drain_ && options_.host.empty() && !result.command.empty()) {
      options_.host = result.command[0];
      result.command.erase(result.command.begin());
    }
    RETURN_IF_ERROR(Check(result.command));
    return std::move(options_);
  }

  std::string Help() const { return flags_.Help(); }

 private:
  void Text(const std::string& names, const std::string& kind, const std::string& help,
            std::string* target) {
    flags_.Value(names, kind, help, [target](const std::string& text) {
      *target = text;
      return absl::OkStatus();
    });
  }

  absl::Status Check(const std::vector<std::string>& left) const {
    if (!left.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("'", left[0], "' is one argument too many"));
    }
    if (drain_ && options_.host.empty()) {
      return absl::InvalidArgumentError("which host shall leave? e.g. horovodrun drain host2");
    }
    // For a job on this machine both are in its file.
    if (options_.connect.empty() != options_.token_file.empty()) {
      return absl::InvalidArgumentError("--connect and --token-file need each other");
    }
    if (!options_.connect.empty() && !options_.job.empty()) {
      return absl::InvalidArgumentError("--connect and --job exclude each other");
    }
    return absl::OkStatus();
  }

  const bool drain_;
  options::FlagTable flags_;
  ControlOptions options_;
};

}  // namespace

std::string SimilarControlCommand(const std::string& word) {
  for (const char* command : {"status", kDrain}) {
    // 2: letters that are swapped count twice.
    if (options::EditDistance(word, command) <= 2) return command;
  }
  return "";
}

bool IsControlCommand(const std::vector<std::string>& args) {
  return !args.empty() && (args[0] == "status" || args[0] == kDrain);
}

absl::StatusOr<ControlOptions> ParseControlOptions(const std::vector<std::string>& args) {
  return Parser(args[0]).Parse({args.begin() + 1, args.end()});
}

std::string ControlHelpText(const std::string& action) { return Parser(action).Help(); }

}  // namespace hvd::launcher::cli
