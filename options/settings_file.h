// A YAML file of settings, from text to a flat list. Knows YAML, not what the settings mean.
#ifndef OPTIONS_SETTINGS_FILE_H_
#define OPTIONS_SETTINGS_FILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace hvd::options {

struct Setting {
  enum class Kind { kPlain, kQuoted, kEmpty };
  std::string key;    // with those that it stands under: "params.cycle_time_ms"
  std::string value;  // as it is written, without quotes
  Kind kind = Kind::kPlain;
  int line = 0;  // from 1
};

// In the order of the file. `file` is its name in messages.
//   InvalidArgument: no YAML, several documents, a list, a key that is there twice, or groups in
//   groups in groups; one line that begins with file:line.
absl::StatusOr<std::vector<Setting>> ParseSettings(const std::string& text,
                                                   const std::string& file);

// Of a file of at most 1 MiB.   NotFound: it can't be read; says why.   Else as ParseSettings.
absl::StatusOr<std::vector<Setting>> ReadSettings(const std::string& file);

}  // namespace hvd::options

#endif  // OPTIONS_SETTINGS_FILE_H_
