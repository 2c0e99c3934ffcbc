// The part of network.h that asks the operating system.
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "launcher/network.h"

namespace hvd {
namespace {

std::string Numeric(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address->sa_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text, sizeof text);
  } else if (address->sa_family == AF_INET6) {
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, text,
              sizeof text);
  }
  return text;
}

// Link-local addresses of version 6 mean nothing without an interface, which peers name
// differently.
bool IsUsable(const sockaddr* address) {
  if (address == nullptr) return false;
  if (address->sa_family == AF_INET) return true;
  if (address->sa_family != AF_INET6) return false;
  return !IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

// Everything that a request of the resolver points to: kept as long as it may still write there.
struct Lookup {
  std::string name;
  addrinfo hints{};
  gaicb request{};
};

std::vector<std::string> TakeAnswer(Lookup& lookup) {
  std::vector<std::string> addresses;
  for (addrinfo* info = lookup.request.ar_result; info != nullptr; info = info->ai_next) {
    addresses.push_back(Numeric(info->ai_addr));
  }
  if (lookup.request.ar_result != nullptr) freeaddrinfo(lookup.request.ar_result);
  return addresses;
}

// Waits until every request is answered or `timeout` is over.
void AwaitAll(const std::vector<gaicb*>& requests, absl::Duration timeout) {
  const absl::Time deadline = Clock::Real().Now() + timeout;
  for (gaicb* request : requests) {
    while (gai_error(request) == EAI_INPROGRESS) {
      const absl::Duration left = deadline - Clock::Real().Now();
      if (left <= absl::ZeroDuration()) return;
      const timespec wait = absl::ToTimespec(left);
      const gaicb* list[] = {request};
      const int result = gai_suspend(list, 1, &wait);
      if (result == EAI_AGAIN) return;
    }
  }
}

}  // namespace

absl::StatusOr<std::vector<InterfaceAddress>> ListInterfaces() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) {
    return absl::InternalError(
        absl::StrCat("can't list this machine's network interfaces: ", std::strerror(errno)));
  }
  std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  std::vector<InterfaceAddress> result;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (!IsUsable(entry->ifa_addr)) continue;
    result.push_back({entry->ifa_name, Numeric(entry->ifa_addr),
                      entry->ifa_addr->sa_family == AF_INET6,
                      (entry->ifa_flags & IFF_LOOPBACK) != 0,
                      (entry->ifa_flags & IFF_UP) != 0 && (entry->ifa_flags & IFF_RUNNING) != 0});
  }
  return result;
}

std::string OwnHostName() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

NameTable ResolveNames(const std::vector<std::string>& names, absl::Duration timeout) {
  std::vector<std::unique_ptr<Lookup>> lookups;
  std::vector<gaicb*> requests;
  for (const std::string& name : names) {
    auto lookup = std::make_unique<Lookup>();
    lookup->name = name;
    lookup->hints.ai_socktype = SOCK_STREAM;
    lookup->request.ar_name = lookup->name.c_str();
    lookup->request.ar_request = &lookup->hints;
    requests.push_back(&lookup->request);
    lookups.push_back(std::move(lookup));
  }
  NameTable table;
  if (requests.empty()) return table;
  if (getaddrinfo_a(GAI_NOWAIT, requests.data(), requests.size(), nullptr) != 0) return table;
  AwaitAll(requests, timeout);
  for (auto& lookup : lookups) {
    if (gai_error(&lookup->request) == EAI_INPROGRESS &&
        gai_cancel(&lookup->request) == EAI_NOTCANCELED) {
      // The resolver's thread still writes to it: it must outlive this process's last use.
      lookup.release();
      continue;
    }
    if (gai_error(&lookup->request) == 0) table[lookup->name] = TakeAnswer(*lookup);
  }
  return table;
}

std::string SourceAddressTowards(const std::string& address) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* info = nullptr;
  if (getaddrinfo(address.c_str(), "9", &hints, &info) != 0) return "";
  std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(info, &freeaddrinfo);
  const int fd = socket(info->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return "";
  sockaddr_storage source{};
  socklen_t length = sizeof source;
  const bool found = connect(fd, info->ai_addr, info->ai_addrlen) == 0 &&
                     getsockname(fd, reinterpret_cast<sockaddr*>(&source), &length) == 0;
  close(fd);
  return found ? Numeric(reinterpret_cast<sockaddr*>(&source)) : "";
}

}  // namespace hvd
