#include "collectives/shm/small_exchange.h"

namespace hvd::collectives::shm {

absl::Status SmallExchange::Exchange(absl::Time deadline) {
  Slot(links_.rank(), sequence_).sequence.store(sequence_, std::memory_order_release);
  links_.NotifyAll();
  int next = 0;  // all before it have come
  const auto missing = [&] {
    while (next < links_.size() &&
           Slot(next, sequence_).sequence.load(std::memory_order_acquire) == sequence_) {
      ++next;
    }
    return next < links_.size() ? next : -1;
  };
  return links_.Await(missing, deadline);
}

}  // namespace hvd::collectives::shm
