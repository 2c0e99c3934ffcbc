// The matching of receives with messages, by source and tag, in order.
#ifndef COLLECTIVES_MESSAGES_MATCHER_H_
#define COLLECTIVES_MESSAGES_MATCHER_H_

#include <cstdint>
#include <list>
#include <map>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "collectives/messages/arrival.h"
#include "collectives/messages/transfer.h"

namespace hvd::collectives::messages {

// Keeps the receives that have no message yet, and the messages that have no receive yet; no
// message and receive of which both are kept match. Among several, what came first goes first, so
// the messages of one sender with one tag match in order, and a receive from any rank takes the
// message that has waited longest. Pure. Not thread-safe.
class Matcher {
 public:
  // A message arrives: returns the receive that takes it; nullptr: there is none, so Keep it.
  TransferPtr TakePosted(int source, uint64_t tag);
  void Keep(ArrivalPtr arrival);

  // A receive begins: returns the message that it takes; nullptr: there is none, so Post it.
  ArrivalPtr TakeArrived(int source_or_any, uint64_t tag);
  void Post(int source_or_any, TransferPtr receive);

  // Takes out all receives from just this source (which may be kAnySource).
  std::vector<TransferPtr> TakeAllPosted(int source_or_any);
  // Forgets the messages of `source` for which `is_lost` holds.
  void Drop(int source, absl::FunctionRef<bool(const Arrival&)> is_lost);

  bool empty() const { return posted_.empty() && arrived_.empty(); }

 private:
  // The order over all queues.
  template <typename T>
  struct Ordered {
    uint64_t number;
    T item;
  };
  template <typename T>
  using QueuesOfTag = std::map<int, std::list<Ordered<T>>>;  // by source; none is empty
  template <typename T>
  using Queues = absl::flat_hash_map<uint64_t, QueuesOfTag<T>>;  // by tag; none is empty

  template <typename T>
  static T TakeFirst(Queues<T>& queues, typename Queues<T>::iterator of_tag,
                     typename QueuesOfTag<T>::iterator queue);

  Queues<TransferPtr> posted_;
  Queues<ArrivalPtr> arrived_;
  uint64_t next_number_ = 0;
};

}  // namespace hvd::collectives::messages

#endif  // COLLECTIVES_MESSAGES_MATCHER_H_
