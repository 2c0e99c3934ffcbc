#include "collectives/tcp/socket_link.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "absl/strings/string_view.h"
#include "base/net/tcp_socket.h"

namespace hvd::collectives::tcp {
namespace {

// The maximum payload of a TLS record.
constexpr size_t kRecordBytes = 16 << 10;
// How much of a message without memory is read at a time. Its length is not trusted.
constexpr size_t kKeptBytes = 64 << 10;
// After so many a message has been under way for some seconds: the pauses double from 0.2 s.
constexpr int kVainRepeats = 4;

IoResult Outcome(ssize_t bytes, bool reading) {
  IoResult result;
  if (bytes > 0) {
    result.bytes = static_cast<size_t>(bytes);
  } else if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) {
    result.would_block = true;
  } else {
    result.end = reading || bytes < 0;
    result.silent = bytes < 0 && net::IsSilence(errno);
  }
  return result;
}

msghdr MessageOf(iovec* parts, size_t count) {
  msghdr message = {};
  message.msg_iov = parts;
  message.msg_iovlen = count;
  return message;
}

// Writes two parts in one call.
IoResult WriteBoth(net::Wire& wire, absl::string_view first, absl::string_view second) {
  if (wire.encrypted()) {
    // A small message shares a record with its header. A write that would block is repeated with
    // the same bytes, since both parts are still the same then.
    std::array<char, kRecordBytes> record;
    second = second.substr(0, record.size() - first.size());
    std::memcpy(record.data(), first.data(), first.size());
    if (!second.empty()) std::memcpy(&record[first.size()], second.data(), second.size());
    return wire.Write({record.data(), first.size() + second.size()});
  }
  iovec parts[] = {{const_cast<char*>(first.data()), first.size()},
                   {const_cast<char*>(second.data()), second.size()}};
  const msghdr message = MessageOf(parts, 2);
  return Outcome(sendmsg(wire.fd(), &message, MSG_NOSIGNAL), false);
}

// Reads into two parts in one call; under TLS into the first one only.
IoResult ReadBoth(net::Wire& wire, char* first, size_t first_bytes, char* second,
                  size_t second_bytes) {
  if (wire.encrypted()) return wire.Read(first, first_bytes);
  iovec parts[] = {{first, first_bytes}, {second, second_bytes}};
  msghdr message = MessageOf(parts, 2);
  return Outcome(recvmsg(wire.fd(), &message, 0), true);
}

}  // namespace

void SocketLink::Send(const char* data, size_t bytes, size_t* completed) {
  outgoing_.push_back({data, bytes, completed});
  if (outgoing_.size() == 1) WriteSome();
}

void SocketLink::Receive(char* data, size_t bytes, size_t* completed) {
  if (kept_.empty()) {
    incoming_.push_back({data, bytes, completed});
    return;
  }
  if (kept_.front().size() != bytes) {
    end_ = End::kMalformed;
    return incoming_.push_back({data, bytes, completed});
  }
  if (bytes > 0) std::memcpy(data, kept_.front().data(), bytes);
  kept_.pop_front();
  ++*completed;
}

bool SocketLink::Advance() {
  const bool written = WriteSome();
  return ReadSome() || written;
}

// A plain socket that takes or gives less than it could has no more room or bytes, so that another
// call would be in vain. TLS takes and gives a record at a time.
bool SocketLink::IsExhausted(size_t moved, size_t wanted) const {
  return moved < wanted && !wire_.encrypted();
}

bool SocketLink::WriteSome() {
  bool moved = false;
  while (wants_to_write()) {
    const size_t left = kHeaderBytes + outgoing_.front().bytes - written_;
    const IoResult sent = WriteFront();
    if (sent.end) {
      silent_ = silent_ || sent.silent;
      // The peer is gone. What it has sent before may say why.
      ReadToEnd();
      return true;
    }
    if (sent.would_block) break;
    moved = true;
    written_ += sent.bytes;
    if (IsExhausted(sent.bytes, left)) break;
    if (sent.bytes < left) continue;
    ++*outgoing_.front().completed;
    outgoing_.pop_front();
    written_ = 0;
  }
  return moved;
}

IoResult SocketLink::WriteFront() {
  const absl::string_view payload(outgoing_.front().data, outgoing_.front().bytes);
  if (written_ >= kHeaderBytes) return wire_.Write(payload.substr(written_ - kHeaderBytes));
  const int64_t length = static_cast<int64_t>(payload.size());
  Header header;
  std::memcpy(header.data(), &length, kHeaderBytes);
  return WriteBoth(wire_, absl::string_view(header.data(), kHeaderBytes).substr(written_), payload);
}

bool SocketLink::ReadSome() {
  bool moved = false;
  while (wants_to_read()) {
    const Incoming& memory = incoming_.front();
    const size_t left = kHeaderBytes + memory.bytes - read_;
    const IoResult got = ReadFront();
    if (!Account(got)) break;
    moved = true;
    if (end_ != End::kOpen) break;
    if (read_ >= kHeaderBytes && length_ != static_cast<int64_t>(memory.bytes)) {
      end_ = End::kMalformed;
    } else if (got.bytes == left) {
      ++*memory.completed;
      incoming_.pop_front();
      read_ = 0;
    } else if (IsExhausted(got.bytes, left)) {
      break;
    }
  }
  return moved;
}

// REQUIRES: the first message is not complete; reading no bytes would look like the end.
IoResult SocketLink::ReadFront() {
  const Incoming& memory = incoming_.front();
  if (read_ < kHeaderBytes) return ReadHeaderAnd(memory.data, memory.bytes);
  const size_t done = read_ - kHeaderBytes;
  return wire_.Read(memory.data + done, memory.bytes - done);
}

IoResult SocketLink::ReadHeaderAnd(char* data, size_t bytes) {
  return ReadBoth(wire_, &header_[read_], kHeaderBytes - read_, data, bytes);
}

bool SocketLink::Account(const IoResult& got) {
  if (got.would_block) return false;
  if (got.end) {
    silent_ = silent_ || got.silent;
    end_ = End::kLost;
    return true;
  }
  const bool had_header = read_ >= kHeaderBytes;
  read_ += got.bytes;
  if (had_header || read_ < kHeaderBytes) return true;
  std::memcpy(&length_, header_.data(), kHeaderBytes);
  if (length_ >= 0) return true;
  end_ = length_ == kGoodbye ? End::kGoodbye : End::kGaveUp;
  cause_ = static_cast<int>(std::min<int64_t>(kGaveUp - length_, std::numeric_limits<int>::max()));
  return true;
}

void SocketLink::ReadToEnd() {
  while (end_ == End::kOpen) {
    const bool moved = incoming_.empty() ? KeepSome() : ReadSome();
    if (!moved && end_ == End::kOpen) end_ = End::kLost;
  }
}

bool SocketLink::KeepSome() {
  if (read_ < kHeaderBytes) {
    if (!Account(ReadHeaderAnd(nullptr, 0))) return false;
  } else {
    const size_t wanted = kHeaderBytes + static_cast<size_t>(length_) - read_;
    const size_t before = partly_kept_.size();
    partly_kept_.resize(before + std::min(wanted, kKeptBytes));
    const IoResult got = wire_.Read(&partly_kept_[before], partly_kept_.size() - before);
    partly_kept_.resize(before + got.bytes);
    if (!Account(got)) return false;
  }
  if (end_ != End::kOpen || read_ < kHeaderBytes) return true;
  if (read_ < kHeaderBytes + static_cast<size_t>(length_)) return true;
  kept_.push_back(std::move(partly_kept_));
  partly_kept_.clear();
  read_ = 0;
  return true;
}

void SocketLink::Abandon() {
  outgoing_.clear();
  incoming_.clear();
}

void SocketLink::SayLastWord(int64_t value) {
  if (has_left_) return;
  has_left_ = true;
  Header header;
  std::memcpy(header.data(), &value, kHeaderBytes);
  if (written_ == 0) (void)wire_.Write({header.data(), kHeaderBytes});
  wire_.EndWriting();
}

bool SocketLink::IsSilent() {
  tcp_info info = {};
  socklen_t size = sizeof(info);
  if (wire_.valid() && getsockopt(wire_.fd(), IPPROTO_TCP, TCP_INFO, &info, &size) == 0)
    silent_ = silent_ || info.tcpi_retransmits >= kVainRepeats;
  return silent_;
}

uint64_t SocketLink::Unacknowledged() const {
  int bytes = 0;
  if (!wire_.valid() || ioctl(wire_.fd(), SIOCOUTQ, &bytes) != 0) return 0;
  return static_cast<uint64_t>(bytes);
}

void SocketLink::ResetIfBlocked() {
  IsSilent();  // while there is a socket to ask
  int unsent = 0;
  if (!wire_.valid() || ioctl(wire_.fd(), SIOCOUTQNSD, &unsent) != 0 || unsent == 0) return;
  const linger reset = {1, 0};
  setsockopt(wire_.fd(), SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
  wire_.Close();
}

}  // namespace hvd::collectives::tcp
