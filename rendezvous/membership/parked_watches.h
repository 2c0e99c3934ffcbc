// The parked WatchEpoch calls of the current epoch.
#ifndef RENDEZVOUS_MEMBERSHIP_PARKED_WATCHES_H_
#define RENDEZVOUS_MEMBERSHIP_PARKED_WATCHES_H_

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "rendezvous/membership/events.h"

namespace hvd::rendezvous::membership {

// An index by call and by worker; each lookup takes logarithmic time. Removal is in the order of
// call ids. Not thread-safe.
class ParkedWatches {
 public:
  // Of one worker, which waits for one at a time, and repeats it when its connection has broken.
  static constexpr size_t kMost = 64;

  // Returns the worker's oldest watch, removed, if it has more than kMost.
  std::optional<WatchRequested> Add(const WatchRequested& watch);

  // Remove and return the watch of a call (if it is parked), all watches of a worker, the watches
  // that were not notified of a change, or all.
  std::optional<WatchRequested> Take(CallId call);
  std::vector<WatchRequested> TakeOf(WorkerId worker);
  std::vector<WatchRequested> TakeUnaware();
  std::vector<WatchRequested> TakeAll();

  bool empty() const { return by_call_.empty(); }
  bool SomeUnaware() const;

  // See rendezvous/snapshot/fields.h.
  template <typename Fields>
  void Keep(Fields& fields) {
    std::vector<WatchRequested> watches;
    for (const auto& [call, watch] : by_call_) watches.push_back(watch);
    fields("watches", watches);
    if (!Fields::kReads) return;
    TakeAll();
    for (const WatchRequested& watch : watches) Add(watch);
  }

 private:
  std::map<CallId, WatchRequested> by_call_;
  std::set<std::pair<WorkerId, CallId>> by_worker_;
};

}  // namespace hvd::rendezvous::membership

#endif  // RENDEZVOUS_MEMBERSHIP_PARKED_WATCHES_H_
