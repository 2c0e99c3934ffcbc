// A host discovery that suddenly says that there is no host at all. Pure.
#ifndef LAUNCHER_DISCOVERY_EMPTY_LIST_FILTER_H_
#define LAUNCHER_DISCOVERY_EMPTY_LIST_FILTER_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "rendezvous/membership/events.h"

namespace hvd::launcher::discovery {

// Believed, an empty list ends all training at once; far more often it comes of a script that hides
// a failure, as a pipe does. So after a list of some hosts it counts only when it has come
// kBelieved times in a row, as at the very start, where there is nothing to lose. Not thread-safe.
class EmptyListFilter {
 public:
  static constexpr int kBelieved = 10;

  // `who` gives the lists, for messages.
  explicit EmptyListFilter(std::string who) : who_(std::move(who)) {}

  // Takes each result of the discovery, in order, and returns it; but NotFound for an empty list
  // that is not believed.
  absl::StatusOr<std::vector<rendezvous::membership::HostSlots>> Check(
      absl::StatusOr<std::vector<rendezvous::membership::HostSlots>> hosts);

 private:
  const std::string who_;
  bool had_hosts_ = false;  // in the newest list that was believed
  int empty_ones_ = 0;      // since then, in a row
};

}  // namespace hvd::launcher::discovery

#endif  // LAUNCHER_DISCOVERY_EMPTY_LIST_FILTER_H_
