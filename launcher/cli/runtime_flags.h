// horovodrun's flags for variables of the workers' runtime.
#ifndef LAUNCHER_CLI_RUNTIME_FLAGS_H_
#define LAUNCHER_CLI_RUNTIME_FLAGS_H_

#include <map>
#include <string>
#include <vector>

#include "base/settings/runtime_settings.h"
#include "launcher/cli/environment.h"
#include "options/flag_table.h"

namespace hvd::launcher::cli {

// Declares the flags of settings::RuntimeSettings() and collects their values while a FlagTable
// parses. One use; must outlive the table's Parse.
class RuntimeFlags {
 public:
  void Declare(options::FlagTable& flags);

  // The variables that were given, except those that need another variable that was not given
  // (RuntimeSetting::only_with).
  std::vector<Assignment> variables() const;

 private:
  void DeclareSwitch(options::FlagTable& flags, const settings::RuntimeSetting& setting);
  void DeclareValue(options::FlagTable& flags, const settings::RuntimeSetting& setting);

  std::map<const settings::RuntimeSetting*, std::string> values_;
};

}  // namespace hvd::launcher::cli

#endif  // LAUNCHER_CLI_RUNTIME_FLAGS_H_
