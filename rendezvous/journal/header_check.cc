#include "rendezvous/journal/header_check.h"

#include "absl/strings/str_cat.h"

namespace hvd::rendezvous::journal {

absl::Status CheckHeader(const pb::journal::Header& found, const pb::journal::Header& wanted) {
  // Events are applied again by the state machine of this version. Another version may decide
  // otherwise, and its world would not be the one in which the workers are.
  if (found.version() != wanted.version()) {
    return absl::FailedPreconditionError(
        absl::StrCat("was written by horovod ", found.version(), ", this is ", wanted.version()));
  }
  if (found.job_id() != wanted.job_id()) {
    return absl::FailedPreconditionError(
        absl::StrCat("belongs to the job ", found.job_id(), ", not to the job ", wanted.job_id()));
  }
  // The spec has no maps, so its serialization is deterministic.
  if (found.spec().SerializeAsString() != wanted.spec().SerializeAsString()) {
    return absl::FailedPreconditionError("belongs to a job with other options");
  }
  return absl::OkStatus();
}

}  // namespace hvd::rendezvous::journal
