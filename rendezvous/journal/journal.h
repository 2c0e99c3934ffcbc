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

// Job::Record (rendezvous/server/job.cc) decides what is appended.
//
// Not thread-safe. Call snapshot and Replay first, then Append, Sync and Compact.
class Journal {
 public:
  using Visit = std::function<void(const membership::Event&, absl::Time)>;

  // Replaces all events up to a time.
  struct Snapshot {
    std::string state;  // a pb::journal::SavedJob
    absl::Time time;    // of the newest of the events
  };

  virtual ~Journal() = default;

  // The start of the job.
  virtual absl::Time started() const = 0;

  // The state before the first event of Replay; nullopt: the job's start.
  virtual std::optional<Snapshot> snapshot() const = 0;

  // Visits, in order, the events that earlier owners of the journal have appended and synced since
  // the snapshot.
  // Errors:
  //   - DataLoss: it is damaged.
  //   - Internal: it can't be read.
  virtual absl::Status Replay(const Visit& visit) = 0;

  // Adds an event to the next Sync.
  virtual void Append(const membership::Event& event, absl::Time time) = 0;

  // Returns when everything appended is safe from a crash.
  // Errors:
  //   - Internal, ResourceExhausted: it is not safe, and no later event will be; says why.
  virtual absl::Status Sync() = 0;

  // Whether the events since the snapshot are so many that a new snapshot is due.
  virtual bool WantsSnapshot() const = 0;

  // Replaces all events so far by a snapshot: after a crash at any moment there is either all that
  // was before, or this. REQUIRES: nothing was appended since the last Sync.
  // Errors:
  //   - Any code: it failed, and the journal goes on as it was, unless Sync fails too.
  virtual absl::Status Compact(const Snapshot& snapshot) = 0;
};

}  // namespace hvd::rendezvous::journal

#endif  // RENDEZVOUS_JOURNAL_JOURNAL_H_
