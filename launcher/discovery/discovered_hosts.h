// A parser of a host discovery script's output. Pure.
#ifndef LAUNCHER_DISCOVERY_DISCOVERED_HOSTS_H_
#define LAUNCHER_DISCOVERY_DISCOVERED_HOSTS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rendezvous/membership/events.h"

namespace hvd::launcher::discovery {

// The format is one host per line, "name" or "name:slots". Blank lines, lines that begin with '#',
// hosts with 0 slots and repeated lines are ignored. `slots_per_host` applies to lines without
// slots; 0: such lines are errors. A list without hosts is valid.
// Errors:
//   - InvalidArgument: a line of another form, or a host with two numbers of slots; says which
//     line.
absl::StatusOr<std::vector<rendezvous::membership::HostSlots>> ParseDiscoveredHosts(
    absl::string_view text, int slots_per_host);

}  // namespace hvd::launcher::discovery

#endif  // LAUNCHER_DISCOVERY_DISCOVERED_HOSTS_H_
