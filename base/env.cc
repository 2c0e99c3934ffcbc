#include "base/env.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include "absl/strings/string_view.h"

namespace hvd {

namespace {

// The program's own variable, which may not be this library's: see ReadEnvironment. RTLD_DEFAULT
// would search this library's scope first.
char** ProgramsEnvironment() {
  void* const program = dlopen(nullptr, RTLD_LAZY);
  void* const variable = program == nullptr ? nullptr : dlsym(program, "environ");
  return variable == nullptr ? environ : *static_cast<char***>(variable);
}

}  // namespace

Environment ReadEnvironment() {
  Environment result;
  for (char** entry = ProgramsEnvironment(); entry != nullptr && *entry != nullptr; ++entry) {
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
