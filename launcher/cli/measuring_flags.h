// Horovod's flags for the timeline and for autotune.
#ifndef LAUNCHER_CLI_MEASURING_FLAGS_H_
#define LAUNCHER_CLI_MEASURING_FLAGS_H_

#include <string>
#include <vector>

#include "launcher/cli/environment.h"
#include "options/flag_table.h"

namespace hvd::launcher::cli {

// Collects them while a FlagTable parses. One use; must outlive the table's Parse.
class MeasuringFlags {
 public:
  void Declare(options::FlagTable& flags);

  // The variables of the workers' runtime that they stand for. What belongs to the timeline or to
  // autotune reaches the workers only if that is asked for.
  std::vector<Assignment> Finish() const;

 private:
  void DeclareAutotune(options::FlagTable& flags);

  bool autotune_ = false;
  std::vector<Assignment> autotune_values_;
  std::string timeline_;
  bool mark_cycles_ = false;
};

}  // namespace hvd::launcher::cli

#endif  // LAUNCHER_CLI_MEASURING_FLAGS_H_
