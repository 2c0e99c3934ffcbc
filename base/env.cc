#include "base/env.h"

#include <stdlib.h>
#include <unistd.h>

#include "absl/strings/string_view.h"

namespace hvd {

Environment ReadEnvironment() {
  Environment result;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const absl::string_view text(*entry);
    const size_t equals = text.find('=');
    if (equals == absl::string_view::npos) continue;
    result.emplace(std::string(text.substr(0, equals)), std::string(text.substr(equals + 1)));
  }
  return result;
}

Environment ReadVariables(const std::vector<std::string>& names) {
  Environment result;
  for (const std::string& name : names) {
    const char* value = getenv(name.c_str());
    if (value != nullptr) result.emplace(name, value);
  }
  return result;
}

}  // namespace hvd
