// Fuzz target: the variables of the runtime, of which a user sets any to any value.
#include "absl/strings/str_split.h"
#include "base/settings/runtime_settings.h"
#include "tests/support/fuzzing.h"

// Lines NAME=VALUE. A line without a name sets the setting of that number.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hvd::Environment environment;
  const auto& settings = hvd::settings::RuntimeSettings();
  for (const absl::string_view line :
       absl::StrSplit(hvd::AsText(data, size), '\n', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits('=', 1));
    if (parts.first.size() == 1) {
      const size_t number = static_cast<uint8_t>(parts.first[0]) % settings.size();
      environment[std::string(settings[number].variable)] = std::string(parts.second);
    } else {
      environment[std::string(parts.first)] = std::string(parts.second);
    }
  }
  const auto parsed = hvd::settings::ParseRuntimeEnv(environment);
  if (!parsed.ok()) hvd::RequireOneLine(parsed.status());
  return 0;
}
