// The write-ahead log of a job's events, from which a restarted daemon resumes the job.
#ifndef RENDEZVOUS_JOURNAL_JOURNAL_H_
#define RENDEZVOUS_JOURNAL_JOURNAL_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "rendezvous/membership/events.h"

namespace hvd::rendezvous::journal {

// Job::Record (rendezvous/server/job.cc) selects the events that are appended.
//
// Not thread-safe. Call order: snapshot and Replay, then any number of Append, Sync and Compact.
class Journal {
 public:
  using Visit = std::function<void(const membership::Event&, absl::Time)>;

  // The state that replaces all earlier events.
  struct Snapshot {
    std::string state;  // a pb::journal::SavedJob
    absl::Time time;    // when it was made: not before the newest replaced event
  };

  virtual ~Journal() = default;

  // The time at which the job started.
  virtual absl::Time started() const = 0;

  // The state before the first event of Replay; nullopt: Replay starts with the job's first event.
  virtual std::optional<Snapshot> snapshot() const = 0;

  // Visits, in order, all synced events since the snapshot.
  // Errors:
  //   - DataLoss: the journal is damaged.
  //   - Internal: the journal can't be read.
  //   - InvalidArgument: this daemon has no right to read it (etcd).
  virtual absl::Status Replay(const Visit& visit) = 0;

  // Adds an event to the batch that the next Sync writes.
  virtual void Append(const membership::Event& event, absl::Time time) = 0;

  // Writes the batch, and returns when it is durable.
  // Errors, each of which says why. The batch may not be durable, and every later Sync fails, too.
  //   - Internal: the batch can't be written.
  //   - Aborted: this daemon has lost the leadership of the job (etcd).
  //   - Cancelled: this daemon has given up the leadership of the job (etcd).
  virtual absl::Status Sync() = 0;

  // Whether so many events follow the snapshot that a new one is due.
  virtual bool WantsSnapshot() const = 0;

  // Replaces all events so far with a snapshot, atomically: after a crash there are either the old
  // contents or the snapshot. REQUIRES: nothing was appended since the last Sync.
  // Errors:
  //   - Any code: no snapshot was made; the old contents remain, and the journal is usable unless
  //     Sync fails too.
  virtual absl::Status Compact(const Snapshot& snapshot) = 0;
};

}  // namespace hvd::rendezvous::journal

#endif  // RENDEZVOUS_JOURNAL_JOURNAL_H_
