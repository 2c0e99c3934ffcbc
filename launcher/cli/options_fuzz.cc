// Fuzz target: command lines of horovodrun.
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "launcher/cli/control_options.h"
#include "launcher/cli/options.h"
#include "tests/support/fuzzing.h"

// An argument a line.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using hvd::Require;
  const std::vector<std::string> args = absl::StrSplit(hvd::AsText(data, size), '\n');
  // The files of this machine are no part of the input.
  for (const std::string& arg : args) {
    if (absl::StrContains(arg, "--con")) return 0;
  }
  if (hvd::launcher::cli::IsControlCommand(args)) {
    const auto options = hvd::launcher::cli::ParseControlOptions(args);
    if (!options.ok()) Require(!options.status().message().empty(), "an error has a text");
    return 0;
  }
  const auto options = hvd::launcher::cli::ParseOptions(args, {{"HOME", "/root"}});
  if (!options.ok()) {
    Require(!options.status().message().empty(), "an error has a text");
    return 0;
  }
  if (options->action != hvd::launcher::cli::Options::Action::kRunJob) return 0;
  Require(!options->command.empty(), "a job has a command");
  Require(options->num_proc >= 0 &&
              (options->num_proc > 0 || options->auto_num_proc || options->elastic.has_value()),
          "a job has a size");
  return 0;
}
