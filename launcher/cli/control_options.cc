#include "launcher/cli/control_options.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/text/edit_distance.h"
#include "options/command_line.h"
#include "options/daemon_addresses.h"
#include "options/flag_table.h"

namespace hvd::launcher::cli {
namespace {

using Action = ControlOptions::Action;

constexpr std::pair<const char*, Action> kActions[] = {
    {"status", Action::kStatus}, {"drain", Action::kDrain}, {"stop", Action::kStop}};

constexpr char kUsualPause[] = "2";  // seconds

// Gives each --watch without a value the usual one. REQUIRES: the command takes no words besides
// options, so a word that follows --watch is its value.
void CompleteWatch(std::vector<std::string>& args) {
  for (size_t i = 0; i < args.size(); ++i) {
    const bool has_value = i + 1 < args.size() && !absl::StartsWith(args[i + 1], "-");
    if (args[i] == "--watch" && !has_value) args[i] = absl::StrCat("--watch=", kUsualPause);
  }
}

// The parser of one command line. For one use.
class Parser {
 public:
  explicit Parser(const std::string& name) : flags_(Usage(name), {}) {
    for (const auto& [action_name, action] : kActions) {
      if (name == action_name) options_.action = action;
    }
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
    switch (options_.action) {
      case Action::kStatus:
        DeclareStatus();
        break;
      case Action::kDrain:
        DeclareDrain();
        break;
      case Action::kStop:
        DeclareStop();
        break;
      case Action::kShowHelp:
        break;
    }
  }

  absl::StatusOr<ControlOptions> Parse(std::vector<std::string> args) {
    // The host may come before or after the options.
    if (drains() && !args.empty() && args[0][0] != '-') {
      options_.host = args[0];
      args.erase(args.begin());
    }
    if (options_.action == Action::kStatus) CompleteWatch(args);
    ASSIGN_OR_RETURN(options::FlagTable::Result result, flags_.Parse(args));
    if (result.help) {
      options_.action = Action::kShowHelp;
      return std::move(options_);
    }
    // The table takes the first word and all that follows for a command.
    if (drains() && options_.host.empty() && !result.command.empty()) {
      options_.host = result.command[0];
      result.command.erase(result.command.begin());
    }
    RETURN_IF_ERROR(Check(result.command));
    return std::move(options_);
  }

  std::string Help() const { return flags_.Help(); }

 private:
  static std::string Usage(const std::string& name) {
    return absl::StrCat("horovodrun ", name, name == "drain" ? " HOST" : "", " [options]");
  }

  void DeclareStatus() {
    flags_.Flag("--json", "One JSON object, on one line; its fields do not change their meaning",
                [this] { options_.json = true; });
    flags_.Value(
        "--watch", "[SECONDS]", "Again and again, until the job ends; by default every 2 s",
        [this](const std::string& text) {
          ASSIGN_OR_RETURN(options_.watch, options::ParseSeconds("--watch", text, 0.1, 86400));
          return absl::OkStatus();
        });
    flags_.Footer("State, hosts and workers of a job that runs.");
  }

  void DeclareDrain() {
    // From 1: a grace of 0 stands for the job's own.
    flags_.Value("--grace", "SECONDS", "Grace period for the host (the job's own)",
                 [this](const std::string& text) {
                   ASSIGN_OR_RETURN(int64_t seconds,
                                    options::ParseInteger("--grace", text, 1, 7 * 86400));
                   options_.grace = absl::Seconds(seconds);
                   return absl::OkStatus();
                 });
    flags_.Footer(
        "The host's workers commit together with all others, leave, and exit with 0; no step is "
        "lost.\nThe job continues without them.");
  }

  void DeclareStop() {
    flags_.Flag("--now", "Kill the workers; work since the newest checkpoint is lost",
                [this] { options_.now = true; });
    flags_.Footer(
        "Ends the job like SIGTERM to horovodrun, with exit code 143. In an elastic job all "
        "workers commit and\nleave, within the job's grace period; no step is lost. In a static "
        "job they get SIGTERM, and SIGKILL after 5 s.\nReturns at once, without waiting for the "
        "end.");
  }

  bool drains() const { return options_.action == Action::kDrain; }

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
    if (drains() && options_.host.empty()) {
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

  options::FlagTable flags_;
  ControlOptions options_;
};

}  // namespace

std::string SimilarControlCommand(const std::string& word) {
  if (word.size() < 3) return "";  // it would resemble everything
  std::vector<absl::string_view> names;
  for (const auto& [name, action] : kActions) names.emplace_back(name);
  return std::string(text::Nearest(word, names, 2));  // 2: letters that are swapped count twice
}

bool IsControlCommand(const std::vector<std::string>& args) {
  return !args.empty() && std::any_of(std::begin(kActions), std::end(kActions),
                                      [&](const auto& each) { return args[0] == each.first; });
}

absl::StatusOr<ControlOptions> ParseControlOptions(const std::vector<std::string>& args) {
  return Parser(args[0]).Parse({args.begin() + 1, args.end()});
}

std::string ControlHelpText(const std::string& action) { return Parser(action).Help(); }

}  // namespace hvd::launcher::cli
