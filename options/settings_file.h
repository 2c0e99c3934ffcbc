// A parser that flattens a YAML settings file into a list. It does not know the meaning of the
// settings.
#ifndef OPTIONS_SETTINGS_FILE_H_
#define OPTIONS_SETTINGS_FILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace hvd::options {

struct Setting {
  enum class Kind { kPlain, kQuoted, kEmpty };
  std::string key;    // prefixed with its groups' keys: "params.cycle_time_ms"
  std::string value;  // as written in the file, without quotes
  Kind kind = Kind::kPlain;
  int line = 0;  // from 1
};

// Returns the settings in the order of the file. `file` is the file's name in messages.
// Errors: one line that begins with file:line.
//   - InvalidArgument: not YAML, several documents, a list, a duplicate key, or groups nested too
//     deeply.
absl::StatusOr<std::vector<Setting>> ParseSettings(const std::string& text,
                                                   const std::string& file);

// Reads and parses a file of at most 1 MiB.
// Errors:
//   - NotFound: the file can't be read; says why.
//   - any other: as ParseSettings.
absl::StatusOr<std::vector<Setting>> ReadSettings(const std::string& file);

}  // namespace hvd::options

#endif  // OPTIONS_SETTINGS_FILE_H_
