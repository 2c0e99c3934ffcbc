#include "collectives/tcp/peer_link.h"

#include <algorithm>
#include <utility>

namespace hvd::collectives::tcp {
namespace {

using End = SocketLink::End;

// Parts begin at multiples of a cache line.
constexpr size_t kPartAlignment = 64;

// A longer pause counts as this long: the peer came late to its operation, or its process stood
// still, which says nothing about the network.
constexpr absl::Duration kLongestPause = absl::Milliseconds(10);

bool IsOpen(const SocketLink& socket) { return socket.end() == End::kOpen; }

void ReadIfHungUp(SocketLink& socket) {
  pollfd polled = {socket.fd(), POLLRDHUP, 0};
  if (IsOpen(socket) && poll(&polled, 1, 0) > 0) socket.ReadToEnd();
}

}  // namespace

PeerLink::PeerLink(net::Wire first, size_t large_bytes, Clock& clock)
    : large_bytes_(large_bytes), clock_(clock) {
  sockets_.emplace_back(std::move(first));
}

void PeerLink::AddConnections(std::vector<net::Wire> further) {
  for (net::Wire& wire : further) sockets_.emplace_back(std::move(wire));
}

bool PeerLink::AnyInUse(absl::FunctionRef<bool(const SocketLink&)> is_so) const {
  const auto end = splits_ ? sockets_.end() : sockets_.begin() + 1;
  return std::any_of(sockets_.begin(), end, is_so);
}

bool PeerLink::IsWhole() const { return std::all_of(sockets_.begin(), sockets_.end(), IsOpen); }

bool PeerLink::HasLost() const {
  return AnyInUse([](const SocketLink& socket) { return socket.end() == End::kLost; });
}

End PeerLink::end() const {
  // Asked after each step of a small message.
  if (!splits_ && IsOpen(sockets_.front())) return End::kOpen;
  const auto gave_up = [](const SocketLink& socket) { return socket.end() == End::kGaveUp; };
  if (std::any_of(sockets_.begin(), sockets_.end(), gave_up)) return End::kGaveUp;
  for (const End end : {End::kLost, End::kMalformed, End::kGoodbye}) {
    if (AnyInUse([end](const SocketLink& socket) { return socket.end() == end; })) return end;
  }
  return End::kOpen;
}

int PeerLink::cause() const {
  const auto gave_up = std::find_if(sockets_.begin(), sockets_.end(), [](const SocketLink& socket) {
    return socket.end() == End::kGaveUp;
  });
  return gave_up->cause();
}

bool PeerLink::IsSilent() {
  return std::any_of(sockets_.begin(), sockets_.end(),
                     [](SocketLink& socket) { return socket.IsSilent(); });
}

uint64_t PeerLink::Unacknowledged() const {
  uint64_t bytes = 0;
  for (const SocketLink& socket : sockets_) bytes += socket.Unacknowledged();
  return bytes;
}

std::string PeerLink::Tampering() const {
  std::string why;
  for (const SocketLink& socket : sockets_) {
    if (why.empty()) why = socket.Tampering();
  }
  return why;
}

size_t PeerLink::PartsOf(size_t bytes) const {
  return splits_ && IsLarge(bytes) ? sockets_.size() : 1;
}

void PeerLink::ForEachPart(size_t bytes,
                           absl::FunctionRef<void(SocketLink&, size_t, size_t)> move) {
  const size_t parts = PartsOf(bytes);
  const size_t even = (bytes + parts - 1) / parts;
  const size_t part =
      parts == 1 ? bytes : (even + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
  for (size_t i = 0; i < parts; ++i) {
    const size_t begin = std::min(i * part, bytes);
    move(sockets_[i], begin, std::min(part, bytes - begin));
  }
}

// A small message behind no large one is counted by its connection.
void PeerLink::Send(const char* data, size_t bytes, size_t* completed) {
  if (!IsLarge(bytes) && sent_.empty()) return sockets_[0].Send(data, bytes, completed);
  if (IsLarge(bytes)) large_bytes_started_ += bytes;
  sent_.push_back({bytes, PartsOf(bytes), completed});
  size_t* const moved = &sent_.back().moved_parts;
  ForEachPart(bytes, [&](SocketLink& socket, size_t offset, size_t part) {
    socket.Send(data + offset, part, moved);
  });
  Settle();
}

void PeerLink::Receive(char* data, size_t bytes, size_t* completed) {
  if (!IsLarge(bytes) && received_.empty()) return sockets_[0].Receive(data, bytes, completed);
  if (IsLarge(bytes)) large_bytes_started_ += bytes;
  received_.push_back({bytes, PartsOf(bytes), completed});
  size_t* const moved = &received_.back().moved_parts;
  ForEachPart(bytes, [&](SocketLink& socket, size_t offset, size_t part) {
    socket.Receive(data + offset, part, moved);
  });
  Settle();
}

bool PeerLink::Advance() {
  bool moved = false;
  for (SocketLink& socket : sockets_) moved |= socket.Advance();
  if (moved) Settle();
  return moved;
}

void PeerLink::Settle() {
  for (; !received_.empty() && received_.front().moved_parts == received_.front().parts;
       received_.pop_front()) {
    ++*received_.front().completed;
    if (IsLarge(received_.front().bytes)) pace_.moved_bytes += received_.front().bytes;
  }
  for (; !sent_.empty() && sent_.front().moved_parts == sent_.front().parts; sent_.pop_front()) {
    const Message& message = sent_.front();
    ++*message.completed;
    if (!IsLarge(message.bytes)) continue;
    pace_.bytes += message.bytes;
    pace_.moved_bytes += message.bytes;
    if (is_held_up_) pace_.held_up_bytes += message.bytes;
  }
  is_held_up_ = !sent_.empty();  // what was started is sent at once, as far as the kernel takes it
  MeasureMoving();
}

// After each call that has moved something, or has started a message.
void PeerLink::MeasureMoving() {
  const bool moves = !sent_.empty() || !received_.empty();
  if (!moves && !moved_at_.has_value()) return;
  const absl::Time now = clock_.Now();
  if (moved_at_.has_value()) {
    const absl::Duration passed = std::clamp(now - *moved_at_, absl::ZeroDuration(), kLongestPause);
    pace_.moving_nanoseconds += static_cast<uint64_t>(absl::ToInt64Nanoseconds(passed));
  }
  moved_at_.reset();
  if (moves) moved_at_ = now;
}

SendPace PeerLink::TakePace() { return std::exchange(pace_, {}); }

bool PeerLink::wants_to_move() const {
  return AnyInUse(
      [](const SocketLink& socket) { return socket.wants_to_read() || socket.wants_to_write(); });
}

bool PeerLink::is_stuck() const {
  return AnyInUse([](const SocketLink& socket) { return socket.is_stuck(); });
}

void PeerLink::AppendPolled(std::vector<pollfd>& polled) const {
  for (const SocketLink& socket : sockets_) {
    const int events =
        (socket.wants_to_read() ? POLLIN : 0) | (socket.wants_to_write() ? POLLOUT : 0);
    if (events == 0) continue;
    polled.push_back({socket.fd(), static_cast<short>(events), 0});  // NOLINT: poll's own type
  }
}

std::vector<int> PeerLink::fds() const {
  std::vector<int> fds;
  for (const SocketLink& socket : sockets_) fds.push_back(socket.fd());
  return fds;
}

void PeerLink::ReadToEnd(int fd) {
  for (SocketLink& socket : sockets_) {
    if (socket.fd() == fd) socket.ReadToEnd();
  }
  Settle();
}

void PeerLink::ReadHangUps() {
  for (SocketLink& socket : sockets_) ReadIfHungUp(socket);
  Settle();
}

void PeerLink::Abandon() {
  for (SocketLink& socket : sockets_) socket.Abandon();
  sent_.clear();
  received_.clear();
}

void PeerLink::SayGoodbye() {
  for (SocketLink& socket : sockets_) socket.SayGoodbye();
}

void PeerLink::SayGaveUp(int cause) {
  for (SocketLink& socket : sockets_) socket.SayGaveUp(cause);
}

void PeerLink::ResetIfBlocked() {
  for (SocketLink& socket : sockets_) socket.ResetIfBlocked();
}

}  // namespace hvd::collectives::tcp
