// What happened to a job, kept so that a daemon that is started again can take it up.
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

// Not thread-safe. First snapshot and Replay, then Append, Sync and Compact.
class Journal {
 public:
  using Visit = std::function<void(const membership::Event&, absl::Time)>;

  // What stands for all events up to a time.
  struct Snapshot {
    std::string state;  // a pb::journal::SavedJob
    absl::Time time;    // of the newest of the events
  };

  virtual ~Journal() = default;

  // When the job began.
  virtual absl::Time started() const = 0;

  // What the events of Replay go on from; nullopt: the job's start.
  virtual std::optional<Snapshot> snapshot() const = 0;

  // Gives what was appended and synced since the snapshot by those who had the journal before, in
  // order.
  //   DataLoss: it is damaged.   Internal: it can't be read.
  virtual absl::Status Replay(const Visit& visit) = 0;

  // Notes an event for the next Sync.
  virtual void Append(const membership::Event& event, absl::Time time) = 0;

  // Returns when everything appended is where no crash can take it from.
  //   Internal, ResourceExhausted: it is not, and nothing will be from now on; says why.
  virtual absl::Status Sync() = 0;

  // Whether the events since the snapshot weigh so much that there had better be a new one.
  virtual bool WantsSnapshot() const = 0;

  // Puts a snapshot in the place of all events there are: after a crash at any moment there is
  // either all that was before, or this. REQUIRES: nothing was appended since the last Sync.
  //   Any error: it has come to nothing, and the journal goes on as it was, unless Sync fails too.
  virtual absl::Status Compact(const Snapshot& snapshot) = 0;
};

}  // namespace hvd::rendezvous::journal

#endif  // RENDEZVOUS_JOURNAL_JOURNAL_H_
