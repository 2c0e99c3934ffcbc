// The part of local_network.h that asks the operating system.
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/net/local_network.h"

namespace hvd::net {
namespace {

// A lookup mostly waits for a name server. A limit, because a list of hosts may be long.
constexpr size_t kResolverThreads = 16;

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

// The state shared by the resolving threads and the waiting thread. getaddrinfo can't be
// interrupted, so after a timeout the detached threads go on; the shared_ptr keeps this state alive
// for them.
struct Lookups {
  std::vector<std::string> names;  // constant once shared
  absl::Mutex mutex;
  size_t next ABSL_GUARDED_BY(mutex) = 0;
  size_t answered ABSL_GUARDED_BY(mutex) = 0;
  NameTable table ABSL_GUARDED_BY(mutex);

  bool AllAnswered() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) { return answered == names.size(); }
};

// Returns all addresses of a name; none if the name is unknown.
std::vector<std::string> Resolve(const std::string& name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* info = nullptr;
  if (getaddrinfo(name.c_str(), nullptr, &hints, &info) != 0) return {};
  std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(info, &freeaddrinfo);
  std::vector<std::string> addresses;
  for (; info != nullptr; info = info->ai_next) addresses.push_back(Numeric(info->ai_addr));
  return addresses;
}

void Work(const std::shared_ptr<Lookups>& lookups) {
  absl::MutexLock lock(&lookups->mutex);
  while (lookups->next < lookups->names.size()) {
    const std::string& name = lookups->names[lookups->next++];
    // `name` stays valid: `names` does not change once the threads run.
    lookups->mutex.Unlock();
    std::vector<std::string> addresses = Resolve(name);
    lookups->mutex.Lock();
    ++lookups->answered;
    if (!addresses.empty()) lookups->table[name] = std::move(addresses);
  }
}

}  // namespace

std::string OwnHostName() {
  char name[256] = "";
  // One byte less: gethostname need not write a terminating zero if it cuts the name.
  gethostname(name, sizeof name - 1);
  return name;
}

NameTable ResolveNames(const std::vector<std::string>& names, absl::Duration timeout) {
  auto lookups = std::make_shared<Lookups>();
  lookups->names = names;
  for (size_t i = 0; i < std::min(names.size(), kResolverThreads); ++i) {
    std::thread([lookups] { Work(lookups); }).detach();
  }
  Clock& clock = Clock::Real();
  absl::MutexLock lock(&lookups->mutex);
  clock.AwaitWithDeadline(lookups->mutex, absl::Condition(lookups.get(), &Lookups::AllAnswered),
                          clock.Now() + timeout);
  return lookups->table;
}

std::string SourceAddressTowards(const std::string& address) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* info = nullptr;
  // Any port would do. 9 is the discard service.
  if (getaddrinfo(address.c_str(), "9", &hints, &info) != 0) return "";
  std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(info, &freeaddrinfo);
  const int fd = socket(info->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return "";
  sockaddr_storage source{};
  socklen_t length = sizeof source;
  // Connecting a UDP socket sends nothing; the kernel only chooses the route and the source
  // address.
  const bool found = connect(fd, info->ai_addr, info->ai_addrlen) == 0 &&
                     getsockname(fd, reinterpret_cast<sockaddr*>(&source), &length) == 0;
  close(fd);
  return found ? Numeric(reinterpret_cast<sockaddr*>(&source)) : "";
}

}  // namespace hvd::net
