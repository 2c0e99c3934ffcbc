// A parser of a YAML file of settings into a flat list. It knows YAML, not the meaning of the
// settings.
#ifndef OPTIONS_SETTINGS_FILE_H_
#define OPTIONS_SETTINGS_FILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace hvd::options {

struct Setting {
  enum class Kind { kPlain, kQuoted, kEmpty };
  std::string key;    // with the keys of its groups: "params.cycle_time_ms"
  std::string value;  // as it is written, without quotes
  Kind kind = Kind::kPlain;
  int line = 0;  // from 1
};

// The settings in the order of the file. `file` is its name in messages.
// Errors: one line that begins with file:line.
//   - InvalidArgument: not YAML, several documents, a list, a key that is there twice, or groups in
//     groups in groups.
absl::StatusOr<std::vector<Setting>> ParseSettings(const std::string& text,
                                                   const std::string& file);

// The settings of a file of at most 1 MiB.
// Errors:
//   - NotFound: it can't be read; says why.
//   - any other: as ParseSettings.
absl::StatusOr<std::vector<Setting>> ReadSettings(const std::string& file);

}  // namespace hvd::options

#endif  // OPTIONS_SETTINGS_FILE_H_
