// A journal in etcd.
#ifndef RENDEZVOUS_ETCD_ETCD_JOURNAL_H_
#define RENDEZVOUS_ETCD_ETCD_JOURNAL_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rendezvous/etcd/fenced_writer.h"
#include "rendezvous/etcd/key_value_store.h"
#include "rendezvous/etcd/keys.h"
#include "rendezvous/etcd/leadership.h"
#include "rendezvous/journal/journal.h"
#include "rendezvous/policy/job_spec.h"

namespace hvd::rendezvous::etcd {

// Consists of a head, values with several events each and, if there is one, a snapshot in chunks.
// Compact writes the chunks of the new snapshot beside the old one. Then one transaction makes the
// head refer to the new snapshot, and deletes the old one and the events that it replaces.
class EtcdJournal : public journal::Journal {
 public:
  // The target size of a value. A single event that is larger gets a value for itself: such events
  // stay below etcd's limit of a request, 1.5 MiB.
  static constexpr size_t kLargestValue = size_t{512} << 10;
  // A new snapshot is due when the events have this size, or twice the size of the snapshot if that
  // is more.
  static constexpr size_t kLeastEvents = size_t{1} << 20;

  // Opens the journal of this job. If there is none, creates it with the start time `now`, unless
  // `must_exist`. The first four arguments must outlive the result.
  // Errors:
  //   - FailedPrecondition: the journal belongs to another job, or was written by another version.
  //   - DataLoss: the journal is damaged, or missing although it must exist.
  //   - InvalidArgument: etcd does not let the user read the job's keys; names their prefix.
  //   - Aborted: the leadership was lost.
  static absl::StatusOr<std::unique_ptr<EtcdJournal>> Open(
      KeyValueStore& store, const Leadership& leadership, const JobKeys& keys, FencedWriter& writer,
      const std::string& job_id, const policy::JobSpec& spec, absl::Time now, bool must_exist);
};

}  // namespace hvd::rendezvous::etcd

#endif  // RENDEZVOUS_ETCD_ETCD_JOURNAL_H_
