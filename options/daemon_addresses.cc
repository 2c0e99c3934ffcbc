#include "options/daemon_addresses.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

namespace hvd::options {
namespace {

absl::StatusOr<net::HostPort> ParseDaemon(absl::string_view flag, absl::string_view text) {
  // Numeric IPv6 addresses need brackets: in fd00::1:4000 the port may be part of the address.
  net::HostPort daemon = net::SplitHostPort(text);
  int port = 0;
  if (daemon.host.empty() || !absl::SimpleAtoi(daemon.port, &port) || port < 1 || port > 65535 ||
      (absl::StrContains(daemon.host, ':') && text[0] != '[')) {
    return absl::InvalidArgumentError(absl::StrCat(
        flag, ": '", text, "' is not a host and a port, as node1:4000 or [fd00::1]:4000"));
  }
  return daemon;
}

}  // namespace

absl::StatusOr<std::vector<net::HostPort>> ParseDaemons(absl::string_view flag,
                                                        const std::string& text) {
  std::vector<net::HostPort> daemons;
  for (const absl::string_view one : absl::StrSplit(text, ',')) {
    ASSIGN_OR_RETURN(net::HostPort daemon, ParseDaemon(flag, one));
    daemons.push_back(std::move(daemon));
  }
  return daemons;
}

}  // namespace hvd::options
