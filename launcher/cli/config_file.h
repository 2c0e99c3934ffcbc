// The reader of the YAML settings file (--config-file), which converts its keys to flags: Horovod's
// keys for settings of the runtime, and keys of the job.
#ifndef LAUNCHER_CLI_CONFIG_FILE_H_
#define LAUNCHER_CLI_CONFIG_FILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "options/settings_file.h"

namespace hvd::launcher::cli {

struct ConfigFlag {
  std::string where;     // "job.yaml:3: params.cycle_time_ms"
  std::string argument;  // "--cycle-time-ms=2"; its value is not checked yet
};

// Converts settings to flags. `file` is the file's name in messages. Pure.
// Errors: one line that begins with file:line.
//   - InvalidArgument: an unknown key, a key without a value, or a value of the wrong type.
absl::StatusOr<std::vector<ConfigFlag>> FlagsOfSettings(
    const std::vector<options::Setting>& settings, const std::string& file);

// Errors: those of FlagsOfSettings and ReadSettings.
absl::StatusOr<std::vector<ConfigFlag>> ReadConfigFile(const std::string& file);

}  // namespace hvd::launcher::cli

#endif  // LAUNCHER_CLI_CONFIG_FILE_H_
