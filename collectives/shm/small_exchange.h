// The exchange of small data: an all-gather of a few bytes per rank, with one latency.
#ifndef COLLECTIVES_SHM_SMALL_EXCHANGE_H_
#define COLLECTIVES_SHM_SMALL_EXCHANGE_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "collectives/shm/shm_links.h"

namespace hvd::collectives::shm {

// Not thread-safe; every rank must make the same calls. `links` must outlive it.
class SmallExchange {
 public:
  explicit SmallExchange(ShmLinks& links) : links_(links) {}

  // Returns the memory for this rank's next contribution of `bytes` (at most kSmallBytes).
  char* Prepare(size_t bytes) { return Slot(links_.rank(), ++sequence_).Data(bytes); }

  // Publishes the contribution and waits for those of all other ranks.
  // Errors: those of ShmLinks::Await.
  absl::Status Exchange(absl::Duration timeout);

  // The contribution of `rank`, of `bytes` bytes, valid until the next Prepare().
  // REQUIRES: Exchange() has returned OK since the last Prepare().
  const char* Of(int rank, size_t bytes) const { return Slot(rank, sequence_).Data(bytes); }

 private:
  segment::SmallSlot& Slot(int rank, uint64_t sequence) const {
    return links_.segment().small(rank, sequence);
  }

  ShmLinks& links_;
  uint64_t sequence_ = 0;
};

}  // namespace hvd::collectives::shm

#endif  // COLLECTIVES_SHM_SMALL_EXCHANGE_H_
