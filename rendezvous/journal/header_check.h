// The check of a journal's header: whether it is this job's, and of this version. Pure.
#ifndef RENDEZVOUS_JOURNAL_HEADER_CHECK_H_
#define RENDEZVOUS_JOURNAL_HEADER_CHECK_H_

#include "absl/status/status.h"
#include "proto/journal.pb.h"

namespace hvd::rendezvous::journal {

// Formats are the caller's matter.
// Errors:
//   - FailedPrecondition: it is another job's, a job's with other options, or another version's.
absl::Status CheckHeader(const pb::journal::Header& found, const pb::journal::Header& wanted);

}  // namespace hvd::rendezvous::journal

#endif  // RENDEZVOUS_JOURNAL_HEADER_CHECK_H_
