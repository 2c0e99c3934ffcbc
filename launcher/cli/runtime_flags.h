// horovodrun's flags that stand for a variable of the workers' runtime, but for those of
// measuring_flags.h.
#ifndef LAUNCHER_CLI_RUNTIME_FLAGS_H_
#define LAUNCHER_CLI_RUNTIME_FLAGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "launcher/cli/environment.h"
#include "options/flag_table.h"

namespace hvd {

// Collects them while a FlagTable parses. One use; must outlive the table's Parse.
class RuntimeFlags {
 public:
  void Declare(FlagTable& flags);
  const std::vector<Assignment>& variables() const { return variables_; }

 private:
  void DeclareTuneables(FlagTable& flags);
  void DeclareHierarchy(FlagTable& flags);
  void DeclareLog(FlagTable& flags);
  void Tuneable(FlagTable& flags, const std::string& name, const std::string& help,
                const std::string& variable, int64_t factor = 1);
  void Set(const std::string& variable, const std::string& value) {
    variables_.emplace_back(variable, value);
  }

  std::vector<Assignment> variables_;
};

}  // namespace hvd

#endif  // LAUNCHER_CLI_RUNTIME_FLAGS_H_
