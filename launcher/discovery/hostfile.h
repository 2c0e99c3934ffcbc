// Host files: one host a line.
#ifndef LAUNCHER_DISCOVERY_HOSTFILE_H_
#define LAUNCHER_DISCOVERY_HOSTFILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rendezvous/membership/events.h"

namespace hvd::launcher::discovery {

// "name slots=N" or "name:N"; blank lines and what follows a '#' don't count.
//   InvalidArgument: a broken line ("file:line: what is wrong"), a host that comes twice, or none
//   at all. `file` is for messages only.
absl::StatusOr<std::vector<rendezvous::membership::HostSlots>> ParseHostfile(
    absl::string_view text, const std::string& file);

// Reads and parses a file.   NotFound: it can't be read; says why.   InvalidArgument: as above.
absl::StatusOr<std::vector<rendezvous::membership::HostSlots>> ReadHostfile(
    const std::string& file);

}  // namespace hvd::launcher::discovery

#endif  // LAUNCHER_DISCOVERY_HOSTFILE_H_
