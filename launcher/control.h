// The commands `horovodrun status`, `horovodrun drain HOST` and `horovodrun stop`.
#ifndef LAUNCHER_CONTROL_H_
#define LAUNCHER_CONTROL_H_

#include <string>

#include "absl/status/statusor.h"
#include "launcher/cli/control_options.h"

namespace hvd::launcher {

// What a command prints.
struct ControlAnswer {
  std::string text;  // ends with a newline
  std::string job_id = {};
  bool is_over = false;  // the job has its verdict
};

// Calls the job's daemon. For the status of several jobs the answer is a list, without a job's id.
// `job_realm`: see kJobRealm.
// Errors: one line each.
//   - NotFound: no such job, host or file.
//   - InvalidArgument: several jobs run, and the options do not say which one is meant.
//   - FailedPrecondition: the job can't be drained: it is not elastic, or is over.
//   - Unauthenticated: the token file is of another job.
//   - Unavailable, DeadlineExceeded: the job's daemon does not answer.
absl::StatusOr<ControlAnswer> Control(const cli::ControlOptions& options,
                                      const std::string& job_realm);

}  // namespace hvd::launcher

#endif  // LAUNCHER_CONTROL_H_
