// Fuzz target: command lines of horovod-rendezvousd.
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "rendezvous/daemon/rendezvousd_options.h"
#include "tests/support/fuzzing.h"

// An argument a line.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using hvd::Require;
  const std::vector<std::string> args = absl::StrSplit(hvd::AsText(data, size), '\n');
  const auto command = hvd::rendezvous::daemon::ParseRendezvousdCommand(args, {});
  if (command.options.has_value()) {
    const auto& job = command.options->job;
    Require(!command.options->listen.empty(), "it listens");
    Require(job.min_workers >= 1 && job.min_workers <= job.max_workers, "a job has a size");
  } else if (command.exit_code != 0) {
    hvd::RequireOneLine(absl::StripSuffix(command.text, "\n"));
  }
  return 0;
}
