#include "launcher/discovery/discovered_hosts.h"

#include <map>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "base/text/names.h"
#include "launcher/discovery/host_list.h"

namespace hvd::launcher::discovery {
namespace {

// Whether a line ends with a number of slots. IPv6 addresses must be in brackets: "fd00::1" would
// be the host "fd00:" with one slot.
bool NamesSlots(absl::string_view line) {
  return absl::StrContains(line, ':') && !absl::EndsWith(line, "]");
}

// Whether the line says that a host has no slots, as "a:0".
bool IsAway(absl::string_view line) {
  const size_t colon = line.rfind(':');
  if (colon == absl::string_view::npos || line.substr(colon) != ":0") return false;
  return ParseHost(absl::StrCat(line.substr(0, colon), ":1")).ok();
}

// Where a host came first.
struct Seen {
  int line = 0;
  int slots = 0;
};

absl::StatusOr<rendezvous::membership::HostSlots> ParseLine(absl::string_view line,
                                                            int slots_per_host) {
  if (NamesSlots(line)) return ParseHost(line);
  if (slots_per_host > 0) return ParseHost(absl::StrCat(line, ":", slots_per_host));
  // First the error of a line that is no host's name: adding ":SLOTS" would not repair it.
  RETURN_IF_ERROR(ParseHost(absl::StrCat(line, ":1")).status());
  return absl::InvalidArgumentError(
      absl::StrCat(text::Quoted(line), " names no number of slots; print ", line,
                   ":SLOTS, or give --slots-per-host for all such hosts"));
}

}  // namespace

absl::StatusOr<std::vector<rendezvous::membership::HostSlots>> ParseDiscoveredHosts(
    absl::string_view text, int slots_per_host) {
  std::vector<rendezvous::membership::HostSlots> hosts;
  std::map<std::string, Seen> seen;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    // What Horovod's scripts print, too: a host that is away now has no slots.
    if (line.empty() || line[0] == '#' || IsAway(line)) continue;
    absl::StatusOr<rendezvous::membership::HostSlots> host = ParseLine(line, slots_per_host);
    if (!host.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number, ": ", host.status().message()));
    }
    // Not added up: a script that prints a host twice has printed a list twice, or contradicts
    // itself.
    const auto [first, is_new] = seen.emplace(host->host, Seen{number, host->slots});
    if (is_new) {
      hosts.push_back(*std::move(host));
    } else if (first->second.slots != host->slots) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number, ": host ", host->host, " has ", host->slots, " slots, but ",
                       first->second.slots, " in line ", first->second.line));
    }
  }
  return hosts;
}

}  // namespace hvd::launcher::discovery
