// Validation of a job's specification.
#ifndef RENDEZVOUS_SERVER_CHECK_SPEC_H_
#define RENDEZVOUS_SERVER_CHECK_SPEC_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "rendezvous/policy/job_spec.h"

namespace hvd::rendezvous::server {

// Errors:
//   - InvalidArgument: names the contradiction.
inline absl::Status CheckSpec(const policy::JobSpec& spec) {
  if (spec.min_workers < 1 || spec.max_workers < spec.min_workers) {
    return absl::InvalidArgumentError(absl::StrCat("a job can't have from ", spec.min_workers,
                                                   " to ", spec.max_workers, " workers"));
  }
  if (!spec.elastic.has_value() && spec.min_workers != spec.max_workers) {
    return absl::InvalidArgumentError(absl::StrCat("a job of ", spec.min_workers, " to ",
                                                   spec.max_workers, " workers must be elastic"));
  }
  return absl::OkStatus();
}

}  // namespace hvd::rendezvous::server

#endif  // RENDEZVOUS_SERVER_CHECK_SPEC_H_
