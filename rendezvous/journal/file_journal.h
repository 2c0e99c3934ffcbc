// A journal in a local file.
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

// The file begins with a header: the job and, if there is one, the snapshot. Events follow, one
// batch per Sync. Compact writes a new file and, when that is on disk, renames it over the old one.
// The file's size is at most three times the snapshot's, plus kLeastEvents, plus one Sync.
class FileJournal : public Journal {
 public:
  // A new snapshot is due when the events have this size, or twice the size of the snapshot if that
  // is more.
  static constexpr int64_t kLeastEvents = int64_t{1} << 20;

  // The size of the incomplete last Sync that Open has cut off; 0: none.
  virtual int64_t bytes_cut() const = 0;

  // Whether `folder` contains a non-empty journal file, valid or not.
  // Errors:
  //   - InvalidArgument: the file can't be opened; says why.
  static absl::StatusOr<bool> IsIn(const os::PrivateFolder& folder);

  // Opens the file "journal" in `folder`, which must outlive the result. If it is missing or empty,
  // creates it with the start time `now`. Uses a temporary file "journal.new". REQUIRES: no other
  // process has the journal open.
  // Errors:
  //   - InvalidArgument: the file can't be opened; says why.
  //   - Internal: the file can't be written.
  //   - FailedPrecondition: the journal belongs to another job, or was written by another version.
  //   - DataLoss: the journal is damaged; says where, and gives the remedy.
  static absl::StatusOr<std::unique_ptr<FileJournal>> Open(const os::PrivateFolder& folder,
                                                           const std::string& job_id,
                                                           const policy::JobSpec& spec,
                                                           absl::Time now);
};

}  // namespace hvd::rendezvous::journal

#endif  // RENDEZVOUS_JOURNAL_FILE_JOURNAL_H_
