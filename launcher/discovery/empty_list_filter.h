// A filter for sudden empty lists from a host discovery. Pure.
#ifndef LAUNCHER_DISCOVERY_EMPTY_LIST_FILTER_H_
#define LAUNCHER_DISCOVERY_EMPTY_LIST_FILTER_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "rendezvous/membership/events.h"

namespace hvd::launcher::discovery {

// An empty list would end all training at once, and is far more often the result of a script that
// hides a failure, as a pipe does. So after a list with hosts an empty list is accepted only when
// it has come kBelieved times in a row. An empty list at the very start, where there is nothing to
// lose, is accepted at once. Not thread-safe.
class EmptyListFilter {
 public:
  static constexpr int kBelieved = 10;

  // `who`: the name of the source of the lists, for messages.
  explicit EmptyListFilter(std::string who) : who_(std::move(who)) {}

  // Takes each result of the discovery, in order, and returns it if it is accepted.
  // Errors:
  //   - NotFound: an empty list that is not accepted.
  //   - any other: the result's own.
  absl::StatusOr<std::vector<rendezvous::membership::HostSlots>> Check(
      absl::StatusOr<std::vector<rendezvous::membership::HostSlots>> hosts);

 private:
  const std::string who_;
  bool had_hosts_ = false;  // in the newest list that was accepted
  int empty_ones_ = 0;      // since then, in a row
};

}  // namespace hvd::launcher::discovery

#endif  // LAUNCHER_DISCOVERY_EMPTY_LIST_FILTER_H_
