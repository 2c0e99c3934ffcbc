// The commands `horovodrun status` and `horovodrun drain HOST`.
#ifndef LAUNCHER_CONTROL_H_
#define LAUNCHER_CONTROL_H_

#include <string>

#include "absl/status/statusor.h"
#include "launcher/cli/control_options.h"

namespace hvd::launcher {

// Calls the job's daemon and returns the text to print; for the status of several jobs a list.
// `job_realm`: see kJobRealm.
// Errors: one line each.
//   - NotFound: no such job, host or file.
//   - InvalidArgument: several jobs run, and the options do not say which one to drain.
//   - FailedPrecondition: the job is not elastic, or is over.
//   - Unavailable, DeadlineExceeded: the job's daemon does not answer.
absl::StatusOr<std::string> Control(const cli::ControlOptions& options,
                                    const std::string& job_realm);

}  // namespace hvd::launcher

#endif  // LAUNCHER_CONTROL_H_
