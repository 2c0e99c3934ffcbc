// A parser for the host list of the command line: "host1:2,host2:4". Pure.
#ifndef LAUNCHER_DISCOVERY_HOST_LIST_H_
#define LAUNCHER_DISCOVERY_HOST_LIST_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rendezvous/membership/events.h"

namespace hvd::launcher::discovery {

// Parses "name:slots". A numeric IPv6 address is in brackets; the result's name is without them.
// Errors:
//   - InvalidArgument: not of this form; says in one line what is wrong with which entry.
absl::StatusOr<rendezvous::membership::HostSlots> ParseHost(absl::string_view entry);

// Makes a host from its name and the text of its number of slots.
// Errors: those of ParseHost.
absl::StatusOr<rendezvous::membership::HostSlots> MakeHost(absl::string_view name,
                                                           absl::string_view slots);

// Parses entries separated by commas.
// Errors:
//   - InvalidArgument: as for ParseHost, or a host that comes twice.
absl::StatusOr<std::vector<rendezvous::membership::HostSlots>> ParseHostList(
    absl::string_view list);

// Returns the first hosts that have enough slots for `num_proc` processes; the last of them has
// only the slots that are used.
// Errors:
//   - InvalidArgument: there are fewer slots than processes.
absl::StatusOr<std::vector<rendezvous::membership::HostSlots>> TakeSlots(
    const std::vector<rendezvous::membership::HostSlots>& hosts, int num_proc);

}  // namespace hvd::launcher::discovery

#endif  // LAUNCHER_DISCOVERY_HOST_LIST_H_
