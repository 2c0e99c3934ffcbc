// What happened to a job, kept so that a daemon that is started again can take it up.
#ifndef RENDEZVOUS_JOURNAL_JOURNAL_H_
#define RENDEZVOUS_JOURNAL_JOURNAL_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "rendezvous/membership/events.h"

namespace hvd {

// Not thread-safe. First Replay, then Append and Sync.
class Journal {
 public:
  using Visit = std::function<void(const Event&, absl::Time)>;

  virtual ~Journal() = default;

  // When the job began.
  virtual absl::Time started() const = 0;

  // Gives what was appended and synced by those who had the journal before, in order.
  //   DataLoss: it is damaged.   Internal: it can't be read.
  virtual absl::Status Replay(const Visit& visit) = 0;

  // Notes an event for the next Sync.
  virtual void Append(const Event& event, absl::Time time) = 0;

  // Returns when everything appended is where no crash can take it from.
  //   Internal, ResourceExhausted: it is not, and nothing will be from now on; says why.
  virtual absl::Status Sync() = 0;
};

}  // namespace hvd

#endif  // RENDEZVOUS_JOURNAL_JOURNAL_H_
