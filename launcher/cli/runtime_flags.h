// horovodrun's flags that stand for a variable of the workers' runtime, but for those of
// measuring_flags.h.
#ifndef LAUNCHER_CLI_RUNTIME_FLAGS_H_
#define LAUNCHER_CLI_RUNTIME_FLAGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "launcher/cli/environment.h"
#include "options/flag_table.h"

namespace hvd::launcher::cli {

// Collects them while a FlagTable parses. One use; must outlive the table's Parse.
class RuntimeFlags {
 public:
  void Declare(options::FlagTable& flags);
  const std::vector<Assignment>& variables() const { return variables_; }

 private:
  void DeclareTuneables(options::FlagTable& flags);
  void DeclareHierarchy(options::FlagTable& flags);
  void DeclareLog(options::FlagTable& flags);
  void Tuneable(options::FlagTable& flags, const std::string& name, const std::string& help,
                const std::string& variable, int64_t factor = 1);
  void Set(const std::string& variable, const std::string& value) {
    variables_.emplace_back(variable, value);
  }

  std::vector<Assignment> variables_;
};

}  // namespace hvd::launcher::cli

#endif  // LAUNCHER_CLI_RUNTIME_FLAGS_H_
