#include "collectives/messages/socket_flow.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace hvd::collectives::messages {
namespace {

// The maximum payload of a TLS record.
constexpr size_t kRecordBytes = size_t{16} << 10;
constexpr size_t kBufferBytes = size_t{16} << 10;

}  // namespace

size_t SocketFlow::Write(absl::string_view first, absl::string_view second) {
  size_t written = 0;
  while (!write_ended_ && !(first.empty() && second.empty())) {
    const IoResult result = WriteBoth(first, second);
    write_ended_ = result.end;
    if (result.end || result.would_block) break;
    written += result.bytes;
    const size_t of_first = std::min(result.bytes, first.size());
    first.remove_prefix(of_first);
    second.remove_prefix(result.bytes - of_first);
  }
  return written;
}

// In one call. A TLS write that would block is repeated with the same bytes, since both parts are
// still the same then.
IoResult SocketFlow::WriteBoth(absl::string_view first, absl::string_view second) {
  if (first.empty()) return wire_.Write(second);
  if (wire_.encrypted()) {
    std::array<char, kRecordBytes> record;
    second = second.substr(0, record.size() - first.size());
    std::memcpy(record.data(), first.data(), first.size());
    if (!second.empty()) std::memcpy(&record[first.size()], second.data(), second.size());
    return wire_.Write({record.data(), first.size() + second.size()});
  }
  iovec parts[] = {{const_cast<char*>(first.data()), first.size()},
                   {const_cast<char*>(second.data()), second.size()}};
  msghdr message = {};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  const ssize_t sent = sendmsg(wire_.fd(), &message, MSG_NOSIGNAL);
  IoResult result;
  result.bytes = sent > 0 ? static_cast<size_t>(sent) : 0;
  result.would_block = sent < 0 && (errno == EAGAIN || errno == EINTR);
  result.end = sent < 0 && !result.would_block;
  return result;
}

size_t SocketFlow::Read(char* to, size_t size) {
  if (begin_ == end_) {
    if (size >= kBufferBytes) return Receive(to, size);
    buffer_.resize(kBufferBytes);
    begin_ = 0;
    end_ = Receive(buffer_.data(), buffer_.size());
  }
  const size_t count = std::min(size, end_ - begin_);
  if (count > 0) std::memcpy(to, &buffer_[begin_], count);
  begin_ += count;
  return count;
}

size_t SocketFlow::Receive(char* to, size_t size) {
  if (read_ended_) return 0;
  const IoResult result = wire_.Read(to, size);
  read_ended_ = result.end;
  return result.bytes;
}

}  // namespace hvd::collectives::messages
