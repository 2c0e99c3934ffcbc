#include "collectives/shm/small_exchange.h"

namespace hvd::collectives::shm {

// Memory order: the release store publishes the contribution, and the acquire load that sees its
// sequence number makes the bytes visible.
//
// The comparison can be for equality: the next contribution in the same slot is number sequence_+2.
// A peer writes it only after it has seen this rank's number sequence_+1, which this rank publishes
// after it has finished with the current one. For the same reason no counter of readers is needed.
absl::Status SmallExchange::Exchange(absl::Duration timeout) {
  Slot(links_.rank(), sequence_).sequence.store(sequence_, std::memory_order_release);
  links_.NotifyAll();
  int next = 0;  // the ranks below have published; `missing` need not check them again
  const auto missing = [&] {
    while (next < links_.size() &&
           Slot(next, sequence_).sequence.load(std::memory_order_acquire) == sequence_) {
      ++next;
    }
    return next < links_.size() ? next : -1;
  };
  return links_.Await(missing, timeout);
}

}  // namespace hvd::collectives::shm
