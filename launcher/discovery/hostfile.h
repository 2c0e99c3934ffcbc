// A parser for host files, which have one host per line.
#ifndef LAUNCHER_DISCOVERY_HOSTFILE_H_
#define LAUNCHER_DISCOVERY_HOSTFILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rendezvous/membership/events.h"

namespace hvd::launcher::discovery {

// Parses lines "name slots=N" or "name:N"; blank lines and text after a '#' are ignored. `file` is
// for messages only.
// Errors:
//   - InvalidArgument: a malformed line ("file:line: problem"), a host listed twice, or no host.
absl::StatusOr<std::vector<rendezvous::membership::HostSlots>> ParseHostfile(
    absl::string_view text, const std::string& file);

// Reads and parses a file.
// Errors:
//   - NotFound: it can't be read; says why.
//   - InvalidArgument: as ParseHostfile, or it is longer than 64 MiB.
absl::StatusOr<std::vector<rendezvous::membership::HostSlots>> ReadHostfile(
    const std::string& file);

}  // namespace hvd::launcher::discovery

#endif  // LAUNCHER_DISCOVERY_HOSTFILE_H_
