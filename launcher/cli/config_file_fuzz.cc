// Fuzz target: the file of --config-file.
#include "absl/strings/match.h"
#include "launcher/cli/config_file.h"
#include "options/settings_file.h"
#include "tests/support/fuzzing.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using hvd::Require;
  const auto check = [](const absl::Status& error) {
    Require(absl::StartsWith(error.message(), "job.yaml"), "an error names the file");
  };
  const auto settings =
      hvd::options::ParseSettings(std::string(hvd::AsText(data, size)), "job.yaml");
  if (!settings.ok()) return check(settings.status()), 0;
  for (const auto& setting : *settings) {
    Require(!setting.key.empty() && setting.line >= 1, "a setting has a key and a line");
  }
  const auto flags = hvd::launcher::cli::FlagsOfSettings(*settings, "job.yaml");
  if (!flags.ok()) return check(flags.status()), 0;
  for (const auto& flag : *flags) {
    Require(absl::StartsWith(flag.argument, "-"), "a setting is a flag");
    Require(absl::StartsWith(flag.where, "job.yaml:"), "it says where it comes from");
  }
  return 0;
}
