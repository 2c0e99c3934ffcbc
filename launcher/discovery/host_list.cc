#include "launcher/discovery/host_list.h"

#include <algorithm>
#include <cstdint>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "base/text/names.h"

namespace hvd::launcher::discovery {
namespace {

constexpr char kFormat[] = "Write each host as HOST:SLOTS, for example node1:4,node2:4.";

constexpr size_t kLongestName = 255;  // as of text::CheckName

// The daemon's limit for an agent.
constexpr int kMaxSlots = 65536;

bool IsName(absl::string_view name, bool bracketed) {
  // ssh would read a leading '-' as an option.
  if (name.empty() || name.size() > kLongestName || name[0] == '-') return false;
  return std::all_of(name.begin(), name.end(), [bracketed](char c) {
    return absl::ascii_isalnum(c) || c == '_' || c == '.' || c == '-' ||
           (bracketed && (c == ':' || c == '%'));
  });
}

}  // namespace

absl::StatusOr<rendezvous::membership::HostSlots> MakeHost(absl::string_view name,
                                                           absl::string_view slots) {
  const bool bracketed = name.size() > 2 && name.front() == '[' && name.back() == ']';
  if (bracketed) name = name.substr(1, name.size() - 2);
  if (!IsName(name, bracketed)) {
    return absl::InvalidArgumentError(
        absl::StrCat(text::Quoted(name), " is not a host name. ", kFormat));
  }
  int count = 0;
  // SimpleAtoi alone would accept "+2" and " 2".
  if (!absl::SimpleAtoi(slots, &count) || !absl::ascii_isdigit(slots[0])) {
    return absl::InvalidArgumentError(absl::StrCat("host ", name, ": ", text::Quoted(slots),
                                                   " is not a number of slots. ", kFormat));
  }
  if (count < 1 || count > kMaxSlots) {
    return absl::InvalidArgumentError(
        absl::StrCat("host ", name, ": ", count, " slots; a host has 1 to ", kMaxSlots));
  }
  return rendezvous::membership::HostSlots{std::string(name), count};
}

absl::StatusOr<rendezvous::membership::HostSlots> ParseHost(absl::string_view entry) {
  entry = absl::StripAsciiWhitespace(entry);
  // The last colon, since an IPv6 address in brackets contains others.
  const size_t colon = entry.rfind(':');
  if (colon == absl::string_view::npos || (!entry.empty() && entry.back() == ']')) {
    return absl::InvalidArgumentError(
        absl::StrCat(text::Quoted(entry), " names no number of slots. ", kFormat));
  }
  return MakeHost(entry.substr(0, colon), entry.substr(colon + 1));
}

absl::StatusOr<std::vector<rendezvous::membership::HostSlots>> ParseHostList(
    absl::string_view list) {
  std::vector<rendezvous::membership::HostSlots> hosts;
  std::set<std::string> names;
  for (absl::string_view entry : absl::StrSplit(list, ',')) {
    ASSIGN_OR_RETURN(rendezvous::membership::HostSlots host, ParseHost(entry));
    if (!names.insert(host.host).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("host ", host.host, " is listed twice; give it all its slots in one entry"));
    }
    hosts.push_back(std::move(host));
  }
  return hosts;
}

absl::StatusOr<std::vector<rendezvous::membership::HostSlots>> TakeSlots(
    const std::vector<rendezvous::membership::HostSlots>& hosts, int num_proc) {
  std::vector<rendezvous::membership::HostSlots> taken;
  // Goes through all hosts even when there are enough slots, for the total in the message.
  int64_t missing = num_proc;
  int64_t available = 0;
  for (const rendezvous::membership::HostSlots& host : hosts) {
    available += host.slots;
    // Hosts that are not needed get no agent.
    if (missing == 0) continue;
    taken.push_back({host.host, static_cast<int>(std::min<int64_t>(missing, host.slots))});
    missing -= taken.back().slots;
  }
  if (missing > 0) {
    return absl::InvalidArgumentError(absl::StrCat(num_proc, " processes need ", num_proc,
                                                   " slots, but the hosts have ", available,
                                                   ": start fewer, or list more slots"));
  }
  return taken;
}

}  // namespace hvd::launcher::discovery
