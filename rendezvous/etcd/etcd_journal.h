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

// A head; events, some of them in each value; and, if there is one, a snapshot in chunks. A new
// snapshot is written beside the old one; then one transaction makes it the head's, and removes the
// old one and the events before it.
class EtcdJournal : public journal::Journal {
 public:
  // etcd's limit of a request is 1.5 MiB. Some events may be larger than this, but not much.
  static constexpr size_t kLargestValue = size_t{512} << 10;
  // The size of the events, at least, before a snapshot is wanted. After a large snapshot: twice
  // its size.
  static constexpr size_t kLeastEvents = size_t{1} << 20;

  // Opens the journal of this job. If there is none, begins it at the time `now`, unless
  // `must_exist`. The first four must outlive it.
  // Errors:
  //   - FailedPrecondition: it is another job's, or was written by another version.
  //   - DataLoss: it is damaged, or has gone.
  //   - Aborted: the leadership is lost.
  static absl::StatusOr<std::unique_ptr<EtcdJournal>> Open(
      KeyValueStore& store, const Leadership& leadership, const JobKeys& keys, FencedWriter& writer,
      const std::string& job_id, const policy::JobSpec& spec, absl::Time now, bool must_exist);
};

}  // namespace hvd::rendezvous::etcd

#endif  // RENDEZVOUS_ETCD_ETCD_JOURNAL_H_
