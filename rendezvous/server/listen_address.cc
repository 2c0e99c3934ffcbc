#include "rendezvous/server/listen_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/fd.h"

namespace hvd {
namespace {

bool ParsePort(absl::string_view text, int& port) {
  return !text.empty() && text.size() <= 5 && absl::ascii_isdigit(text[0]) &&
         absl::SimpleAtoi(text, &port) && port <= 65535;
}

bool FillV4(const std::string& text, int port, ListenAddress& result) {
  auto* const v4 = reinterpret_cast<sockaddr_in*>(&result.address);
  if (inet_pton(AF_INET, text.c_str(), &v4->sin_addr) != 1) return false;
  v4->sin_family = AF_INET;
  v4->sin_port = htons(static_cast<uint16_t>(port));
  result.length = sizeof(*v4);
  return true;
}

bool FillV6(const std::string& text, int port, ListenAddress& result) {
  auto* const v6 = reinterpret_cast<sockaddr_in6*>(&result.address);
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return false;
  const std::string inner = text.substr(1, text.size() - 2);
  if (inet_pton(AF_INET6, inner.c_str(), &v6->sin6_addr) != 1) return false;
  v6->sin6_family = AF_INET6;
  v6->sin6_port = htons(static_cast<uint16_t>(port));
  result.length = sizeof(*v6);
  return true;
}

}  // namespace

std::string ListenAddress::WithPort(int chosen) const { return absl::StrCat(text, ":", chosen); }

absl::StatusOr<ListenAddress> ParseListenAddress(absl::string_view text) {
  const size_t colon = text.rfind(':');
  ListenAddress result;
  if (colon != absl::string_view::npos && ParsePort(text.substr(colon + 1), result.port)) {
    result.text = std::string(text.substr(0, colon));
    if (FillV4(result.text, result.port, result) || FillV6(result.text, result.port, result)) {
      return result;
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("can't listen on \"", text,
                   "\": not a numeric address with a port, as 10.0.0.1:0 or [::1]:0"));
}

absl::Status TryToListen(const ListenAddress& address) {
  const Fd fd(socket(address.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  // As a server does, or connections that were closed a moment ago would count as listeners.
  const int reuse = 1;
  if (fd.valid() && setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof(reuse)) == 0 &&
      bind(fd.get(), reinterpret_cast<const sockaddr*>(&address.address), address.length) == 0 &&
      listen(fd.get(), 1) == 0) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(
      absl::StrCat("can't listen on ", address.WithPort(address.port), ": ", strerror(errno)));
}

}  // namespace hvd
