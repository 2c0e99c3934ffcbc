#include "collectives/hierarchical/host_reach.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/crypto.h"
#include "base/status_macros.h"

namespace hvd::collectives::hierarchical {
namespace {

constexpr size_t kNameBytes = 16;  // random

Fd NewSocket() { return Fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)); }

// Calls bind or connect with an abstract name.
template <typename Call>
bool With(absl::string_view name, const Fd& socket, const Call& call) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, sizeof(address.sun_path) - 1);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return call(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0;
}

}  // namespace

HostReach HostReach::Open() {
  HostReach reach;
  reach.socket_ = NewSocket();
  const std::string name = absl::BytesToHexString(RandomBytes(kNameBytes));
  // Shut down for reading, so that the kernel does not queue data that strangers send.
  if (With(name, reach.socket_, bind) && shutdown(reach.socket_.get(), SHUT_RD) == 0) {
    reach.name_ = name;
  }
  return reach;
}

bool HostReach::CanReach(absl::string_view name) {
  return name.size() == 2 * kNameBytes && With(name, NewSocket(), connect);
}

// Prepends the flag to this rank's value and removes it from the others'. All ranks see all flags,
// so all return the same error.
absl::StatusOr<std::vector<std::string>> ReachExchange::AllGather(absl::string_view key,
                                                                  absl::string_view value,
                                                                  absl::Duration timeout) {
  ASSIGN_OR_RETURN(std::vector<std::string> values,
                   keys_.AllGather(key, absl::StrCat(reaches_ ? "1" : "0", value), timeout));
  for (size_t rank = 0; rank < values.size(); ++rank) {
    if (values[rank].empty() || values[rank][0] != '1') {
      return absl::UnimplementedError(absl::StrCat(
          "rank ", rank, " can't reach rank 0, though both seem to be on the same host"));
    }
    values[rank].erase(0, 1);
  }
  return values;
}

}  // namespace hvd::collectives::hierarchical
