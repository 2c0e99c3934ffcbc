// The command line of `horovodrun status`, `horovodrun drain HOST` and `horovodrun stop`. Pure.
#ifndef LAUNCHER_CLI_CONTROL_OPTIONS_H_
#define LAUNCHER_CLI_CONTROL_OPTIONS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/net/address.h"

namespace hvd::launcher::cli {

struct ControlOptions {
  enum class Action { kStatus, kDrain, kStop, kShowHelp };
  Action action = Action::kStatus;
  bool json = false;                    // the status as JSON
  std::optional<absl::Duration> watch;  // the status again and again, with this pause
  bool now = false;                     // stop: kill the workers
  std::string host;                     // to drain
  absl::Duration grace;                 // zero: the job's own
  std::string job;                      // of several on this machine; empty: the only one
  // The daemons of a job, one of which leads; empty: a job on this machine.
  std::vector<net::HostPort> connect;
  std::string token_file;  // goes with `connect`
};

// Whether horovodrun's arguments, without the program's name, begin with such a command.
bool IsControlCommand(const std::vector<std::string>& args);

// The command that a misspelt `word` resembles; empty: it resembles none.
std::string SimilarControlCommand(const std::string& word);

// REQUIRES: IsControlCommand(args).
// Errors: one line that says what is wrong.
//   - InvalidArgument: a wrong command line.
absl::StatusOr<ControlOptions> ParseControlOptions(const std::vector<std::string>& args);

// `action`: "status", "drain" or "stop".
std::string ControlHelpText(const std::string& action);

}  // namespace hvd::launcher::cli

#endif  // LAUNCHER_CLI_CONTROL_OPTIONS_H_
