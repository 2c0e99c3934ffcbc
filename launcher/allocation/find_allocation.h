// The search for the scheduler in whose job this process runs. Pure but for the files that it is
// given a reader for.
#ifndef LAUNCHER_ALLOCATION_FIND_ALLOCATION_H_
#define LAUNCHER_ALLOCATION_FIND_ALLOCATION_H_

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/env.h"
#include "launcher/allocation/allocation.h"

namespace hvd::launcher::allocation {

// The contents of a file, or nothing if it can't be read.
using ReadFile = std::function<std::optional<std::string>(const std::string& path)>;

// The hosts of the job of Slurm, LSF, PBS or Grid Engine, and a number of slots for each:
//   - Slurm: see ReadSlurmAllocation.
//   - LSF: one for each GPU of CUDA_VISIBLE_DEVICES, as Horovod does, else LSF's own slots.
//   - PBS: one for each line of the file (mpiprocs, ppn); if each host stands there once, one for
//     each GPU.
//   - Grid Engine: as LSF.
// Nothing outside of any job.
// Errors: one line with the remedy.
//   - InvalidArgument: the scheduler's list is broken or can't be read; as ReadSlurmAllocation.
absl::StatusOr<std::optional<Allocation>> FindAllocation(const Environment& environment,
                                                         const ReadFile& read_file);

// A ReadFile for real files.
std::optional<std::string> ReadWholeFile(const std::string& path);

}  // namespace hvd::launcher::allocation

#endif  // LAUNCHER_ALLOCATION_FIND_ALLOCATION_H_
