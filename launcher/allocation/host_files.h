// Parsers for the host lists of LSF, PBS and Grid Engine. Pure.
#ifndef LAUNCHER_ALLOCATION_HOST_FILES_H_
#define LAUNCHER_ALLOCATION_HOST_FILES_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hvd::launcher::allocation {

// Hosts in the order of their first line, each with its number of slots.
using HostCounts = std::vector<std::pair<std::string, int>>;

// Parses the files that LSB_DJOB_HOSTFILE and PBS_NODEFILE name: one host per line, repeated for
// each of its slots.
// Errors:
//   - InvalidArgument: a line is not a host name, or the text has no host.
absl::StatusOr<HostCounts> ParseRepeatedHosts(absl::string_view text);

// Parses LSB_MCPU_HOSTS: "hosta 2 hostb 1".
// Errors:
//   - InvalidArgument: not of this form.
absl::StatusOr<HostCounts> ParseHostsAndCounts(absl::string_view text);

// Parses the file that PE_HOSTFILE names: lines "hosta 2 all.q@hosta <NULL>", one for each host and
// queue.
// Errors:
//   - InvalidArgument: not of this form.
absl::StatusOr<HostCounts> ParsePeHostfile(absl::string_view text);

}  // namespace hvd::launcher::allocation

#endif  // LAUNCHER_ALLOCATION_HOST_FILES_H_
