// The bounds of what others may write into a job's journal and state.
#ifndef RENDEZVOUS_JOURNAL_EVENT_BOUNDS_H_
#define RENDEZVOUS_JOURNAL_EVENT_BOUNDS_H_

#include <cstddef>

#include "absl/status/status.h"
#include "rendezvous/membership/events.h"

namespace hvd::rendezvous::journal {

// The largest event. It fits into one write to etcd, whose limit is 1.5 MiB: the largest value of
// an exchange is 1 MiB.
inline constexpr size_t kLargestEvent = (1 << 20) + (256 << 10);
// The most lines of a list: lines of output, frames of a stack.
inline constexpr size_t kMostLines = 64;

// Shortens the event's texts to text::kLongestText, its lists of texts to kMostLines, and moves its
// numbers into the range that a snapshot may have (snapshot::HasNumbersInRange). Names, addresses,
// keys and values are not changed. `bytes`, if it is not null, gets the size of the event's
// contents.
// Errors:
//   - InvalidArgument: a name, an address or a key is longer than text::kLongestText, or the whole
//     is larger than kLargestEvent. Such an event can't be recorded.
absl::Status Bound(membership::Event& event, size_t* bytes = nullptr);

}  // namespace hvd::rendezvous::journal

#endif  // RENDEZVOUS_JOURNAL_EVENT_BOUNDS_H_
