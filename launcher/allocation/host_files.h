// The lists of hosts that LSF, PBS and Grid Engine write for a job. Pure.
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

// A host a line, once for each of its slots: the files in LSB_DJOB_HOSTFILE and PBS_NODEFILE.
// Errors:
//   - InvalidArgument: a line is no host name, or there is none.
absl::StatusOr<HostCounts> ParseRepeatedHosts(absl::string_view text);

// "hosta 2 hostb 1": LSB_MCPU_HOSTS.
// Errors:
//   - InvalidArgument: not of this form.
absl::StatusOr<HostCounts> ParseHostsAndCounts(absl::string_view text);

// "hosta 2 all.q@hosta <NULL>", a line for each host and queue: the file in PE_HOSTFILE.
// Errors:
//   - InvalidArgument: not of this form.
absl::StatusOr<HostCounts> ParsePeHostfile(absl::string_view text);

}  // namespace hvd::launcher::allocation

#endif  // LAUNCHER_ALLOCATION_HOST_FILES_H_
