// A filter that delays empty results of host discovery until they are confirmed. Pure.
#ifndef LAUNCHER_DISCOVERY_EMPTY_LIST_FILTER_H_
#define LAUNCHER_DISCOVERY_EMPTY_LIST_FILTER_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "rendezvous/membership/events.h"

namespace hvd::launcher::discovery {

// An empty list ends all training at once, but usually comes from a script that hides a failure,
// for example of a command in a pipe. So an empty list after a list with hosts is accepted only
// after kBelieved empty lists in a row. Before the first list with hosts an empty list is accepted
// at once. Not thread-safe.
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
