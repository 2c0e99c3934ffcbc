#include "launcher/discovery/discovered_hosts.h"

#include <map>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "launcher/discovery/host_list.h"

namespace hvd::launcher::discovery {
namespace {

// Whether a line ends with a number of slots. IPv6 addresses must be in brackets: "fd00::1" would
// be the host "fd00:" with one slot.
bool NamesSlots(absl::string_view line) {
  return absl::StrContains(line, ':') && !absl::EndsWith(line, "]");
}

absl::StatusOr<rendezvous::membership::HostSlots> ParseLine(absl::string_view line,
                                                            int slots_per_host) {
  if (NamesSlots(line)) return ParseHost(line);
  if (slots_per_host > 0) return ParseHost(absl::StrCat(line, ":", slots_per_host));
  // First the error of a line that is no host's name: adding ":SLOTS" would not repair it.
  RETURN_IF_ERROR(ParseHost(absl::StrCat(line, ":1")).status());
  return absl::InvalidArgumentError(
      absl::StrCat("'", line, "' names no number of slots; print ", line,
                   ":SLOTS, or give --slots-per-host for all such hosts"));
}

}  // namespace

absl::StatusOr<std::vector<rendezvous::membership::HostSlots>> ParseDiscoveredHosts(
    absl::string_view text, int slots_per_host) {
  std::vector<rendezvous::membership::HostSlots> hosts;
  std::map<std::string, int> seen;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty()) continue;
    absl::StatusOr<rendezvous::membership::HostSlots> host = ParseLine(line, slots_per_host);
    if (!host.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number, ": ", host.status().message()));
    }
    // Refused, not added up: a script that prints a host twice may have printed a list twice.
    const auto [first, is_new] = seen.emplace(host->host, number);
    if (!is_new) {
      return absl::InvalidArgumentError(absl::StrCat(
          "line ", number, ": host ", host->host, " comes twice, first in line ", first->second));
    }
    hosts.push_back(*std::move(host));
  }
  return hosts;
}

}  // namespace hvd::launcher::discovery
