// The list of flags of other launchers: torchrun, mpirun, srun, deepspeed, accelerate, jsrun and
// Ray. They are recognised so that the refusal can name horovodrun's own way. No help lists them.
#ifndef LAUNCHER_CLI_FOREIGN_FLAGS_H_
#define LAUNCHER_CLI_FOREIGN_FLAGS_H_

#include <vector>

#include "options/command_line.h"

namespace hvd::launcher::cli {

const std::vector<options::FlagSpec>& ForeignFlags();

}  // namespace hvd::launcher::cli

#endif  // LAUNCHER_CLI_FOREIGN_FLAGS_H_
