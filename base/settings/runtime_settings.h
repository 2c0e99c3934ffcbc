// The table of the runtime's settings: the single source of the environment variables, horovodrun's
// flags and --config-file keys, their help texts, and docs/settings.md.
#ifndef BASE_SETTINGS_RUNTIME_SETTINGS_H_
#define BASE_SETTINGS_RUNTIME_SETTINGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/env.h"
#include "base/settings/runtime_env.h"
#include "base/settings/setting_readers.h"

namespace hvd::settings {

// One setting. A switch takes 1 or 0.
struct RuntimeSetting {
  enum class Kind { kNumber, kText, kSwitch };

  Kind kind;
  absl::string_view variable;
  absl::string_view default_value;  // of the variable; empty: none
  absl::string_view meaning;        // of a switch: of 1
  absl::string_view meaning_of_0 = {};
  Read read;
  bool is_internal = false;  // set by the agent or meant for NCCL: not in the docs

  // Flags of horovodrun, empty if there are none. Commas separate several spellings.
  absl::string_view group = {};       // their heading in --help
  absl::string_view flag = {};        // of a switch: sets 1
  absl::string_view flag_for_0 = {};  // of a switch only
  absl::string_view value_name = {};  // "MS"
  int64_t factor = 1;                 // the variable's value is the flag's times `factor`
  // The flag has an effect only if this variable is also set by a flag, and not to 0.
  absl::string_view only_with = {};

  // The key of --config-file, empty if there is none.
  absl::string_view key = {};
  bool key_says_0 = false;  // of a switch: `true` means 0
};

// Every setting, in the order of the help text and of the docs. Variables, flags and keys are
// unique.
const std::vector<RuntimeSetting>& RuntimeSettings();

// A variable of Horovod's runtime that has no effect in this version.
struct MeaninglessVariable {
  absl::string_view name;
  absl::string_view neutral_value;  // in lower case; a value that needs no note
  absl::string_view reason;
};
const std::vector<MeaninglessVariable>& MeaninglessVariables();

// Returns the variables of RuntimeSettings() and of MeaninglessVariables() that are set, and all
// others that begin with HOROVOD_, among which may be misspelt ones.
Environment ReadRuntimeVariables();

// Parses the settings' variables in `environment`. An empty value means "not set", as for shells
// that can't unset a variable for one command.
// Errors:
//   - InvalidArgument: a variable has an invalid value; names the variable, the value and the valid
//     values.
absl::StatusOr<RuntimeEnv> ParseRuntimeEnv(const Environment& environment);

}  // namespace hvd::settings

#endif  // BASE_SETTINGS_RUNTIME_SETTINGS_H_
