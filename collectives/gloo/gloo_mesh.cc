#include "collectives/gloo/gloo_mesh.h"

#include <netdb.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <thread>  // NOLINT: Gloo's connect() blocks

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/status_macros.h"
#include "collectives/gloo/gloo_glue.h"
#include "collectives/gloo/guarded_transport.h"
#include "collectives/gloo/proof.h"
#include "gloo/transport/address.h"
#include "gloo/transport/pair.h"

namespace hvd {
namespace {

constexpr char kMeshKey[] = "gloo-mesh";

// One rank's entry in the key exchange: its nonce, then per rank a length byte and the address
// where it waits for that one (none for itself).
std::string EncodeEntry(absl::string_view nonce, const std::vector<std::string>& addresses) {
  std::string entry(nonce);
  for (const std::string& address : addresses) {
    entry.push_back(static_cast<char>(address.size()));
    entry += address;
  }
  return entry;
}

// The nonce of the entry's maker, and where it waits for `rank`.
absl::Status DecodeEntry(absl::string_view entry, int rank, std::string& nonce,
                         std::vector<char>& address) {
  const absl::Status malformed =
      absl::UnavailableError("its entry in the key exchange is malformed");
  if (entry.size() < kNonceBytes) return malformed;
  nonce = std::string(entry.substr(0, kNonceBytes));
  entry.remove_prefix(kNonceBytes);
  for (int r = 0;; ++r) {
    if (entry.empty()) return malformed;
    const size_t length = static_cast<unsigned char>(entry[0]);
    if (entry.size() < 1 + length) return malformed;
    if (r == rank) {
      address.assign(entry.begin() + 1, entry.begin() + 1 + static_cast<ptrdiff_t>(length));
      return absl::OkStatus();
    }
    entry.remove_prefix(1 + length);
  }
}

// Whether this machine can accept connections there. Gloo finds out as well, but runs into
// undefined behaviour if the address can't be resolved and leaks memory if it can't be bound.
absl::Status CheckAddress(const std::string& address) {
  addrinfo hints = {};
  hints.ai_flags = AI_NUMERICHOST;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.c_str(), nullptr, &hints, &found) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("'", address, "' is not a numeric IP address"));
  }
  const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool bound = fd >= 0 && bind(fd, found->ai_addr, found->ai_addrlen) == 0;
  if (fd >= 0) close(fd);
  freeaddrinfo(found);
  if (bound) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(address, " is not an address of this machine"));
}

absl::Status OpenDevice(const GroupInfo& group, GlooMesh& mesh) {
  RETURN_IF_ERROR(CheckAddress(group.address));
  return GlooCall([&] {
    const auto device = std::static_pointer_cast<gloo::transport::tcp::Device>(
        gloo::transport::tcp::CreateDevice(group.address.c_str()));
    mesh.context = MakeGuardedContext(device, group.rank, group.size);
    mesh.ticker.Attach(*device);
  });
}

// Listens once per peer; the addresses, by rank.
absl::StatusOr<std::vector<std::string>> Listen(const GroupInfo& group, GlooMesh& mesh) {
  std::vector<std::string> addresses(group.size);
  // Pairs keep the timeout they were made with; our own deadlines are the ones that count.
  mesh.context->setTimeout(std::chrono::hours(24));
  RETURN_IF_ERROR(GlooCall([&] {
    for (int peer = 0; peer < group.size; ++peer) {
      if (peer == group.rank) continue;
      const std::vector<char> bytes = mesh.context->createPair(peer)->address().bytes();
      addresses[peer].assign(bytes.begin(), bytes.end());
    }
  }));
  return addresses;
}

// Connects the pairs one by one on a thread of its own, since Gloo's connect() knows no deadline
// worth the name.
class PairConnector {
 public:
  PairConnector(const GroupInfo& group, GlooMesh& mesh, std::vector<std::vector<char>> addresses)
      : group_(group), mesh_(mesh), addresses_(std::move(addresses)), missing_(group.size, true) {
    missing_[group.rank] = false;
  }

  absl::Status Run(absl::Time deadline, const Cancellation* cancellation) {
    ASSIGN_OR_RETURN(Pipe done, MakePipe());
    std::thread worker([this, &done] {
      ConnectAll();
      done.write.reset();
    });
    if (!AwaitEnd(done.read.get(), deadline, cancellation)) GiveUp(cancellation);
    worker.join();
    return status_;
  }

 private:
  // Whether the worker has ended by then.
  static bool AwaitEnd(int done, absl::Time deadline, const Cancellation* cancellation) {
    pollfd fds[] = {{done, POLLIN, 0},
                    {cancellation == nullptr ? -1 : cancellation->fd(), POLLIN, 0}};
    while (true) {
      const auto left = GlooTimeout(deadline - Clock::Real().Now()).count();
      constexpr int64_t kMost = std::numeric_limits<int>::max();
      const int ready = poll(fds, 2, static_cast<int>(std::min<int64_t>(left, kMost)));
      if (ready < 0 && errno == EINTR) continue;
      return fds[0].revents != 0;
    }
  }

  void GiveUp(const Cancellation* cancellation) {
    {
      absl::MutexLock lock(&mutex_);
      given_up_ = true;
      if (cancellation != nullptr) status_ = cancellation->status();
      if (status_.ok()) {
        status_ = absl::DeadlineExceededError(
            absl::StrCat("no connection in time to ", DescribeMissing()));
      }
    }
    // A closed pair makes the connect() that waits for it return.
    for (int peer = 0; peer < group_.size; ++peer) {
      if (peer != group_.rank) (void)GlooCall([&] { mesh_.context->getPair(peer)->close(); });
    }
  }

  void ConnectAll() {
    absl::Status status;
    for (int peer = 0; peer < group_.size && status.ok() && !GivenUp(); ++peer) {
      if (peer == group_.rank) continue;
      status = GlooCall([&] { mesh_.context->getPair(peer)->connect(addresses_[peer]); });
      absl::MutexLock lock(&mutex_);
      if (status.ok()) missing_[peer] = false;
      if (!status.ok() && !given_up_) {
        status_ = absl::Status(
            status.code(), absl::StrCat("can't connect to rank ", peer, ": ", status.message()));
      }
    }
  }

  bool GivenUp() {
    absl::MutexLock lock(&mutex_);
    return given_up_;
  }

  std::string DescribeMissing() const {
    std::vector<int> ranks;
    for (int peer = 0; peer < group_.size; ++peer) {
      if (missing_[peer]) ranks.push_back(peer);
    }
    return absl::StrCat("rank ", absl::StrJoin(ranks, ", "));
  }

  const GroupInfo& group_;
  GlooMesh& mesh_;
  const std::vector<std::vector<char>> addresses_;
  absl::Mutex mutex_;
  std::vector<bool> missing_;
  bool given_up_ = false;
  absl::Status status_;
};

}  // namespace

LoopTicker::LoopTicker() : fd_(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {}

LoopTicker::~LoopTicker() { close(fd_); }

void LoopTicker::Attach(gloo::transport::tcp::Device& device) {
  device.registerDescriptor(fd_, EPOLLIN, this);
}

void LoopTicker::SetActive(bool active) {
  itimerspec spec = {};
  if (active) spec.it_interval.tv_nsec = spec.it_value.tv_nsec = 100 * 1000;
  timerfd_settime(fd_, 0, &spec, nullptr);
}

void LoopTicker::handleEvents(int events) {
  uint64_t expirations;
  (void)!read(fd_, &expirations, sizeof(expirations));
}

absl::StatusOr<std::unique_ptr<GlooMesh>> ConnectMesh(const GroupInfo& group, KeyExchange& keys,
                                                      absl::Time deadline,
                                                      const Cancellation* cancellation) {
  auto mesh = std::make_unique<GlooMesh>();
  RETURN_IF_ERROR(OpenDevice(group, *mesh));
  ASSIGN_OR_RETURN(const std::vector<std::string> own, Listen(group, *mesh));
  ASSIGN_OR_RETURN(
      const std::vector<std::string> entries,
      keys.AllGather(kMeshKey, EncodeEntry(MakeNonce(), own), deadline - Clock::Real().Now()));
  if (entries.size() != static_cast<size_t>(group.size)) {
    return absl::InternalError(absl::StrCat("the key exchange gave ", entries.size(),
                                            " entries for ", group.size, " ranks"));
  }
  mesh->nonces.resize(group.size);
  std::vector<std::vector<char>> addresses(group.size);
  for (int peer = 0; peer < group.size; ++peer) {
    const absl::Status decoded =
        DecodeEntry(entries[peer], group.rank, mesh->nonces[peer], addresses[peer]);
    if (!decoded.ok()) {
      return absl::Status(decoded.code(), absl::StrCat("rank ", peer, ": ", decoded.message()));
    }
  }
  mesh->ticker.SetActive(true);
  RETURN_IF_ERROR(PairConnector(group, *mesh, std::move(addresses)).Run(deadline, cancellation));
  mesh->ticker.SetActive(false);
  return mesh;
}

}  // namespace hvd
