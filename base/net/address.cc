#include "base/net/address.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/text/names.h"

namespace hvd::net {
namespace {

bool ParsePort(absl::string_view text, uint16_t* port) {
  int value = 0;
  // SimpleAtoi also accepts a sign, leading spaces and any number of leading zeros.
  if (text.empty() || text.size() > 5 || !absl::ascii_isdigit(text[0]) ||
      !absl::SimpleAtoi(text, &value) || value > 65535) {
    return false;
  }
  *port = static_cast<uint16_t>(value);
  return true;
}

// inet_pton would read only what precedes a NUL.
bool HasNul(const std::string& text) { return text.find('\0') != std::string::npos; }

bool FillV4(const std::string& host, uint16_t port, SocketAddress* result) {
  auto* const v4 = reinterpret_cast<sockaddr_in*>(&result->storage);
  if (inet_pton(AF_INET, host.c_str(), &v4->sin_addr) != 1) return false;
  v4->sin_family = AF_INET;
  v4->sin_port = htons(port);
  result->length = sizeof(*v4);
  return true;
}

// The number of an interface of this machine, which is given as such or by its name; 0: none.
uint32_t InterfaceNumber(const std::string& text) {
  uint32_t number = if_nametoindex(text.c_str());
  char name[IF_NAMESIZE];
  if (number != 0 || (absl::SimpleAtoi(text, &number) && if_indextoname(number, name) != nullptr))
    return number;
  return 0;
}

// The interface is part of link-local addresses only: fe80::1%eth0.
bool FillV6(const std::string& host, uint16_t port, SocketAddress* result) {
  auto* const v6 = reinterpret_cast<sockaddr_in6*>(&result->storage);
  const size_t percent = host.find('%');
  if (inet_pton(AF_INET6, host.substr(0, percent).c_str(), &v6->sin6_addr) != 1) return false;
  if (percent != std::string::npos) {
    v6->sin6_scope_id = InterfaceNumber(host.substr(percent + 1));
    if (v6->sin6_scope_id == 0 || !IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr)) return false;
  }
  v6->sin6_family = AF_INET6;
  v6->sin6_port = htons(port);
  result->length = sizeof(*v6);
  return true;
}

}  // namespace

HostPort SplitHostPort(absl::string_view address) {
  const size_t colon = address.rfind(':');
  // "[::1]" is an address without a port, although it contains colons.
  if (colon == absl::string_view::npos || absl::EndsWith(address, "]")) {
    return {std::string(address), ""};
  }
  absl::string_view host = address.substr(0, colon);
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  return {std::string(host), std::string(address.substr(colon + 1))};
}

std::string JoinHostPort(absl::string_view host, absl::string_view port) {
  return absl::StrContains(host, ':') ? absl::StrCat("[", host, "]:", port)
                                      : absl::StrCat(host, ":", port);
}

std::string AddressBytes(const std::string& address) {
  if (HasNul(address)) return "";
  char bytes[sizeof(in6_addr)];
  if (inet_pton(AF_INET, address.c_str(), bytes) == 1) return std::string(bytes, 4);
  if (inet_pton(AF_INET6, address.c_str(), bytes) == 1) return std::string(bytes, 16);
  return "";
}

absl::StatusOr<SocketAddress> ParseSocketAddress(absl::string_view address) {
  const HostPort parts = SplitHostPort(address);
  SocketAddress result;
  uint16_t port = 0;
  // IPv6 addresses require brackets, others must not have them: the parts must join to the same
  // text.
  const bool whole = JoinHostPort(parts.host, parts.port) == address;
  if (whole && !HasNul(parts.host) && ParsePort(parts.port, &port) &&
      (FillV4(parts.host, port, &result) || FillV6(parts.host, port, &result))) {
    return result;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("not a numeric address:port: ", text::Quoted(address)));
}

std::string NumericHost(const SocketAddress& address) {
  char host[NI_MAXHOST] = "";
  // An error leaves the text empty; with NI_NUMERICHOST no name server is asked.
  getnameinfo(reinterpret_cast<const sockaddr*>(&address.storage), address.length, host,
              sizeof(host), nullptr, 0, NI_NUMERICHOST);
  return host;
}

}  // namespace hvd::net
