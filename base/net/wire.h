// A byte stream between two processes of a job, either plain TCP or TLS.
#ifndef BASE_NET_WIRE_H_
#define BASE_NET_WIRE_H_

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "base/fd.h"
#include "base/net/tls_session.h"

namespace hvd::net {

// Owns a non-blocking stream socket, or none. Not thread-safe. Never raises SIGPIPE.
class Wire {
 public:
  Wire() = default;
  // `tls` null: no encryption.
  Wire(Fd fd, const std::shared_ptr<const TlsContext>& tls, TlsEnd end);
  Wire(Wire&& other) noexcept = default;
  Wire& operator=(Wire&& other) noexcept;
  ~Wire() { Close(); }

  bool valid() const { return fd_.valid(); }
  int fd() const { return fd_.get(); }

  // Performs one step of the TLS handshake; kDone at once without TLS. The methods below require
  // kDone.
  Opening Open() { return tls_ == nullptr ? Opening::kDone : tls_->Open(); }

  // Whether the other end has sent anything at all, and it was read.
  bool heard() const { return tls_ == nullptr ? heard_ : tls_->heard(); }
  bool encrypted() const { return tls_ != nullptr; }

  // See TlsSession.
  IoResult Read(char* buffer, size_t size);
  IoResult Write(absl::string_view data);
  bool HasBuffered() const { return tls_ != nullptr && tls_->HasBuffered(); }
  // Empty without TLS.
  std::string Binding() const { return tls_ == nullptr ? "" : tls_->Binding(); }
  const std::string& failure() const { return tls_ == nullptr ? failure_ : tls_->failure(); }
  bool unsafe() const { return tls_ != nullptr && tls_->unsafe(); }

  // Half-closes the stream: the peer receives all bytes that were written, then the end of the
  // stream.
  void EndWriting();
  void Close();

  // Release the two parts. The caller has to keep them together, since the session borrows the
  // descriptor.
  std::unique_ptr<TlsSession> TakeTls() { return std::move(tls_); }
  Fd TakeFd() { return std::move(fd_); }

 private:
  IoResult Outcome(ssize_t bytes, bool reading);

  Fd fd_;
  std::unique_ptr<TlsSession> tls_;  // borrows fd_
  std::string failure_;
  bool heard_ = false;  // without TLS
};

}  // namespace hvd::net

#endif  // BASE_NET_WIRE_H_
