// The files of the runtime that rank 0 writes: the timeline and the log of autotune.
#ifndef LAUNCHER_PLAN_RUNTIME_FILES_H_
#define LAUNCHER_PLAN_RUNTIME_FILES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "base/fd.h"
#include "launcher/plan/plan.h"

namespace hvd::launcher::plan {

// Opens the files if all workers run on this machine, so that a wrong path ends the command before
// the job starts. Makes a missing file, and changes no other one. The caller keeps the descriptors
// until the job has ended: the reader of a pipe would otherwise see its end at once.
// Errors:
//   - InvalidArgument: a file can't be written; names the setting, the file and the reason.
//   - FailedPrecondition: another job on this machine writes to it; names both.
absl::StatusOr<std::vector<Fd>> OpenRuntimeFiles(const JobPlan& plan);

}  // namespace hvd::launcher::plan

#endif  // LAUNCHER_PLAN_RUNTIME_FILES_H_
