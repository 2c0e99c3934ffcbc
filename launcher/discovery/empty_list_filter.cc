#include "launcher/discovery/empty_list_filter.h"

#include "absl/strings/str_cat.h"

namespace hvd::launcher::discovery {

absl::StatusOr<std::vector<rendezvous::membership::HostSlots>> EmptyListFilter::Check(
    absl::StatusOr<std::vector<rendezvous::membership::HostSlots>> hosts) {
  // An error interrupts the row too: it says nothing about the hosts.
  if (!hosts.ok() || !hosts->empty()) {
    empty_ones_ = 0;
    had_hosts_ = had_hosts_ || hosts.ok();
    return hosts;
  }
  if (had_hosts_ && ++empty_ones_ < kBelieved) {
    return absl::NotFoundError(
        absl::StrCat(who_, " lists no host at all; this is ignored until it has happened ",
                     kBelieved, " times in a row"));
  }
  // Accepted. Further empty lists are accepted at once, until there is a list with hosts.
  had_hosts_ = false;
  empty_ones_ = 0;
  return hosts;
}

}  // namespace hvd::launcher::discovery
