// A journal in a file.
#ifndef RENDEZVOUS_JOURNAL_FILE_JOURNAL_H_
#define RENDEZVOUS_JOURNAL_FILE_JOURNAL_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/os/private_folder.h"
#include "rendezvous/journal/journal.h"
#include "rendezvous/policy/job_spec.h"

namespace hvd::rendezvous::journal {

// One file, which begins with the job and, if there is one, the snapshot. Events follow, a batch
// for each Sync. A new snapshot makes a new file, which replaces the old one atomically when it is
// whole and on disk. The file has at most kLeastEvents bytes and three times the snapshot's, and
// what one Sync writes.
class FileJournal : public Journal {
 public:
  // The size of the events, at least, before a snapshot is wanted. After a large snapshot: twice
  // its size.
  static constexpr int64_t kLeastEvents = int64_t{1} << 20;

  // Bytes of an incomplete last Sync, which were cut off. 0: none.
  virtual int64_t bytes_cut() const = 0;

  // Whether there is a journal in `folder`, be it a good one; an empty file is none.
  // Errors:
  //   - InvalidArgument: the file can't be opened; says why.
  static absl::StatusOr<bool> IsIn(const os::PrivateFolder& folder);

  // Opens the journal of this job in `folder`, which must outlive it. If there is no file "journal"
  // or an empty one, begins it there at the time `now`. No other process may have it open. There is
  // a file "journal.new" at times.
  // Errors:
  //   - InvalidArgument: the file can't be opened; says why.
  //   - Internal: it can't be written.
  //   - FailedPrecondition: it is another job's, or was written by another version.
  //   - DataLoss: it is damaged; says where, and gives the remedy.
  static absl::StatusOr<std::unique_ptr<FileJournal>> Open(const os::PrivateFolder& folder,
                                                           const std::string& job_id,
                                                           const policy::JobSpec& spec,
                                                           absl::Time now);
};

}  // namespace hvd::rendezvous::journal

#endif  // RENDEZVOUS_JOURNAL_FILE_JOURNAL_H_
