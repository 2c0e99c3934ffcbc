#include "base/net/wire.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/net/tcp_socket.h"

namespace hvd::net {

Wire::Wire(Fd fd, const std::shared_ptr<const TlsContext>& tls, TlsEnd end) : fd_(std::move(fd)) {
  if (tls != nullptr) tls_ = std::make_unique<TlsSession>(tls, fd_.get(), end);
}

Wire& Wire::operator=(Wire&& other) noexcept {
  // The session goes first, since it borrows the descriptor that the next line closes.
  tls_ = std::move(other.tls_);
  fd_ = std::move(other.fd_);
  failure_ = std::move(other.failure_);
  heard_ = other.heard_;
  return *this;
}

IoResult Wire::Read(char* buffer, size_t size) {
  if (tls_ != nullptr) return tls_->Read(buffer, size);
  return Outcome(recv(fd_.get(), buffer, size, 0), true);
}

IoResult Wire::Write(absl::string_view data) {
  if (tls_ != nullptr) return tls_->Write(data);
  return Outcome(send(fd_.get(), data.data(), data.size(), MSG_NOSIGNAL), false);
}

IoResult Wire::Outcome(ssize_t bytes, bool reading) {
  // 0 bytes are the end of the stream for a read, but only an empty write.
  IoResult result;
  if (bytes > 0) {
    result.bytes = static_cast<size_t>(bytes);
    heard_ |= reading;
  } else if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) {
    result.would_block = true;
  } else if (bytes < 0) {
    failure_ = strerror(errno);
    result.silent = IsSilence(errno);
    result.end = true;
  } else {
    result.end = reading;
  }
  return result;
}

void Wire::EndWriting() {
  if (tls_ != nullptr) tls_->EndWriting();
  // After the close_notify, which must still be sent.
  shutdown(fd_.get(), SHUT_WR);
}

void Wire::Close() {
  // Before the descriptor, which the session borrows.
  tls_.reset();
  fd_.reset();
}

}  // namespace hvd::net
