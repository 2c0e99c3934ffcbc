// Validation of a journal's header: it must belong to this job and this version. Pure.
#ifndef RENDEZVOUS_JOURNAL_HEADER_CHECK_H_
#define RENDEZVOUS_JOURNAL_HEADER_CHECK_H_

#include "absl/status/status.h"
#include "proto/journal.pb.h"

namespace hvd::rendezvous::journal {

// Does not check the format number; the caller does.
// Errors:
//   - FailedPrecondition: the journal has another job id, other job options, or another version.
absl::Status CheckHeader(const pb::journal::Header& found, const pb::journal::Header& wanted);

}  // namespace hvd::rendezvous::journal

#endif  // RENDEZVOUS_JOURNAL_HEADER_CHECK_H_
