// Fuzz target: command lines of horovod-agent.
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/join_options.h"
#include "tests/support/fuzzing.h"

// An argument a line.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using hvd::Require;
  const std::vector<std::string> args = absl::StrSplit(hvd::AsText(data, size), '\n');
  std::vector<const char*> argv = {"horovod-agent"};
  for (const std::string& arg : args) argv.push_back(arg.c_str());
  const hvd::agent::JoinCommand command =
      hvd::agent::ParseJoinCommand(static_cast<int>(argv.size()), argv.data());
  if (command.options.has_value()) {
    const hvd::agent::JoinOptions& options = *command.options;
    Require(!options.daemons.empty() && options.slots >= 1, "there is a daemon to join");
    Require(options.command.empty() == options.adopt.has_value(),
            "there is a command, or a worker");
  } else if (command.exit_code != 0) {
    hvd::RequireOneLine(absl::StripSuffix(command.text, "\n"));
  }
  return 0;
}
