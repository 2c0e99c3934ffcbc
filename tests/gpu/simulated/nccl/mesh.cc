#include "tests/gpu/simulated/nccl/mesh.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "tests/gpu/simulated/nccl/flow.h"

namespace simulated_gpu {
namespace {

// How long a rank waits before it looks again whether a peer is there.
constexpr int kRetryMilliseconds = 2;

int NewSocket() { return socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); }

// An abstract address, which ends with the process.
socklen_t AddressOf(const std::string& name, int rank, sockaddr_un* address) {
  const std::string path = name + "-" + std::to_string(rank);
  *address = {};
  address->sun_family = AF_UNIX;
  const size_t length = std::min(path.size(), sizeof(address->sun_path) - 1);
  std::memcpy(address->sun_path + 1, path.data(), length);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
}

// What a rank sends to itself. The bytes may overlap.
bool MoveOwn(int rank, const std::vector<Transfer>& sends, const std::vector<Transfer>& receives) {
  std::vector<Transfer> from, to;
  const auto is_own = [rank](const Transfer& transfer) { return transfer.peer == rank; };
  std::copy_if(sends.begin(), sends.end(), std::back_inserter(from), is_own);
  std::copy_if(receives.begin(), receives.end(), std::back_inserter(to), is_own);
  if (from.size() != to.size()) return false;
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i].bytes != to[i].bytes) return false;
    std::memmove(to[i].data, from[i].data, from[i].bytes);
  }
  return true;
}

}  // namespace

Mesh::Mesh(const std::string& name, int rank, int size)
    : name_(name),
      rank_(rank),
      size_(size),
      abort_event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      peers_(size, -1) {}

Mesh::~Mesh() {
  for (const int peer : peers_) {
    if (peer >= 0) close(peer);
  }
  if (listener_ >= 0) close(listener_);
  close(abort_event_);
}

void Mesh::Abort() {
  aborted_ = true;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(abort_event_, &one, sizeof(one));
}

void Mesh::AwaitAbort() {
  while (!aborted_) Await(-1, 0, -1);
}

bool Mesh::Await(int file, short events, int milliseconds) {  // NOLINT(runtime/int)
  pollfd files[] = {{abort_event_, POLLIN, 0}, {file, events, 0}};
  poll(files, 2, milliseconds);
  return !aborted_;
}

Mesh::Outcome Mesh::Connect() {
  Outcome outcome = Listen();
  for (int peer = 0; outcome == Outcome::kDone && peer < rank_; ++peer) outcome = ConnectTo(peer);
  for (int peer = rank_ + 1; outcome == Outcome::kDone && peer < size_; ++peer) {
    outcome = AcceptOne();
  }
  return outcome;
}

Mesh::Outcome Mesh::Listen() {
  sockaddr_un address;
  const socklen_t length = AddressOf(name_, rank_, &address);
  listener_ = NewSocket();
  const bool listens = bind(listener_, reinterpret_cast<sockaddr*>(&address), length) == 0 &&
                       listen(listener_, size_) == 0;
  return listens ? Outcome::kDone : Outcome::kMismatch;
}

Mesh::Outcome Mesh::ConnectTo(int peer) {
  sockaddr_un address;
  const socklen_t length = AddressOf(name_, peer, &address);
  peers_[peer] = NewSocket();
  while (connect(peers_[peer], reinterpret_cast<sockaddr*>(&address), length) != 0) {
    if (!Await(-1, 0, kRetryMilliseconds)) return Outcome::kAborted;
  }
  return SendAll(peers_[peer], &rank_, sizeof(rank_));
}

Mesh::Outcome Mesh::AcceptOne() {
  int accepted;
  while ((accepted = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)) < 0) {
    if (!Await(listener_, POLLIN, -1)) return Outcome::kAborted;
  }
  int peer = -1;
  const Outcome outcome = ReceiveAll(accepted, &peer, sizeof(peer));
  const bool is_awaited = peer > rank_ && peer < size_ && peers_[peer] < 0;
  if (outcome == Outcome::kDone && is_awaited) {
    peers_[peer] = accepted;
    return outcome;
  }
  close(accepted);
  return outcome == Outcome::kDone ? Outcome::kMismatch : outcome;
}

Mesh::Outcome Mesh::SendAll(int file, const void* data, size_t bytes) {
  const auto* const from = static_cast<const char*>(data);
  for (size_t sent = 0; sent < bytes;) {
    const ssize_t now = send(file, from + sent, bytes - sent, MSG_NOSIGNAL);
    if (now >= 0) {
      sent += now;
    } else if (errno != EAGAIN) {
      return Outcome::kPeerIsGone;
    } else if (!Await(file, POLLOUT, -1)) {
      return Outcome::kAborted;
    }
  }
  return Outcome::kDone;
}

Mesh::Outcome Mesh::ReceiveAll(int file, void* data, size_t bytes) {
  auto* const to = static_cast<char*>(data);
  for (size_t received = 0; received < bytes;) {
    const ssize_t now = recv(file, to + received, bytes - received, 0);
    if (now > 0) {
      received += now;
    } else if (now == 0 || errno != EAGAIN) {
      return Outcome::kPeerIsGone;
    } else if (!Await(file, POLLIN, -1)) {
      return Outcome::kAborted;
    }
  }
  return Outcome::kDone;
}

Mesh::Outcome Mesh::Exchange(const std::vector<Transfer>& sends,
                             const std::vector<Transfer>& receives) {
  if (aborted_) return Outcome::kAborted;
  if (!MoveOwn(rank_, sends, receives)) return Outcome::kMismatch;
  std::vector<Flow> flows;
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    flows.emplace_back(peers_[peer], Flow::kOut, peer, sends);
    flows.emplace_back(peers_[peer], Flow::kIn, peer, receives);
  }
  for (;;) {
    std::vector<pollfd> waiting = {{abort_event_, POLLIN, 0}};
    for (Flow& flow : flows) {
      switch (flow.Go()) {
        case Flow::State::kDone:
          break;
        case Flow::State::kBlocked:
          waiting.push_back(
              {flow.file(), static_cast<short>(flow.is_in() ? POLLIN : POLLOUT), 0});  // NOLINT
          break;
        case Flow::State::kBroken:
          return aborted_ ? Outcome::kAborted : Outcome::kPeerIsGone;
        case Flow::State::kMismatch:
          return Outcome::kMismatch;
      }
    }
    if (waiting.size() == 1) return Outcome::kDone;
    poll(waiting.data(), waiting.size(), -1);
    if (aborted_) return Outcome::kAborted;
  }
}

}  // namespace simulated_gpu
