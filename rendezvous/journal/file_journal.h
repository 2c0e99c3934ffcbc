// A journal in a file.
#ifndef RENDEZVOUS_JOURNAL_FILE_JOURNAL_H_
#define RENDEZVOUS_JOURNAL_FILE_JOURNAL_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rendezvous/journal/journal.h"
#include "rendezvous/membership/job_spec.h"

namespace hvd {

class FileJournal : public Journal {
 public:
  // Bytes of a last record that its writer did not complete; they were cut off. 0: none.
  virtual int64_t bytes_cut() const = 0;

  // Opens the journal of this job at `path`, or begins it there, at the time `now`. Nobody else may
  // have it open.
  //   InvalidArgument: the file can't be opened; says why.
  //   FailedPrecondition: it is another job's, or was written by another version.
  //   DataLoss: it is damaged, and where.
  static absl::StatusOr<std::unique_ptr<FileJournal>> Open(const std::string& path,
                                                           const std::string& job_id,
                                                           const JobSpec& spec, absl::Time now);
};

}  // namespace hvd

#endif  // RENDEZVOUS_JOURNAL_FILE_JOURNAL_H_
