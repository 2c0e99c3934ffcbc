// The detection of the scheduler in whose job this process runs. Pure, except for reading files
// through the given reader.
#ifndef LAUNCHER_ALLOCATION_FIND_ALLOCATION_H_
#define LAUNCHER_ALLOCATION_FIND_ALLOCATION_H_

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/env.h"
#include "launcher/allocation/allocation.h"

namespace hvd::launcher::allocation {

// Returns the contents of a file, or nullopt if it can't be read.
using ReadFile = std::function<std::optional<std::string>(const std::string& path)>;

// Returns the hosts of a job of Slurm, LSF, PBS or Grid Engine, with a number of slots for each:
//   - Slurm: see ReadSlurmAllocation.
//   - LSF: one for each GPU of CUDA_VISIBLE_DEVICES, as Horovod does, else LSF's own slots.
//   - PBS: one for each line of the file (mpiprocs, ppn); if every host is listed once, one for
//     each GPU.
//   - Grid Engine: as LSF.
// Returns nullopt outside of a job.
// Errors: one line with the remedy.
//   - InvalidArgument: the scheduler's list is malformed or can't be read, or a case of
//     ReadSlurmAllocation.
absl::StatusOr<std::optional<Allocation>> FindAllocation(const Environment& environment,
                                                         const ReadFile& read_file);

// A ReadFile for real files.
std::optional<std::string> ReadWholeFile(const std::string& path);

}  // namespace hvd::launcher::allocation

#endif  // LAUNCHER_ALLOCATION_FIND_ALLOCATION_H_
