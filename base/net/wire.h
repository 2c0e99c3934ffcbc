// One connection between two workers: its bytes as they are, or under TLS.
#ifndef BASE_NET_WIRE_H_
#define BASE_NET_WIRE_H_

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "base/fd.h"
#include "base/net/tls_session.h"

namespace hvd::net {

// Owns a stream socket that does not block, or none. Not thread-safe. Never raises SIGPIPE.
class Wire {
 public:
  Wire() = default;
  // `tls` null: the bytes go as they are.
  Wire(Fd fd, const std::shared_ptr<const TlsContext>& tls, TlsEnd end);
  Wire(Wire&& other) noexcept = default;
  Wire& operator=(Wire&& other) noexcept;
  ~Wire() { Close(); }

  bool valid() const { return fd_.valid(); }
  int fd() const { return fd_.get(); }

  // One step of making it safe. kDone, at once if the bytes go as they are: from now on the rest
  // may be called.
  Opening Open() { return tls_ == nullptr ? Opening::kDone : tls_->Open(); }

  // See TlsSession.
  IoResult Read(char* buffer, size_t size);
  IoResult Write(absl::string_view data);
  bool HasBuffered() const { return tls_ != nullptr && tls_->HasBuffered(); }
  // Empty if the bytes go as they are.
  std::string Binding() const { return tls_ == nullptr ? "" : tls_->Binding(); }
  const std::string& failure() const { return tls_ == nullptr ? failure_ : tls_->failure(); }
  bool unsafe() const { return tls_ != nullptr && tls_->unsafe(); }

  // The other end reads on to the end of what was written, and hears that nothing more will come.
  void EndWriting();
  void Close();

  // Its two parts, which belong together.
  std::unique_ptr<TlsSession> TakeTls() { return std::move(tls_); }
  Fd TakeFd() { return std::move(fd_); }

 private:
  IoResult Outcome(ssize_t bytes, bool reading);

  Fd fd_;
  std::unique_ptr<TlsSession> tls_;  // borrows fd_
  std::string failure_;
};

}  // namespace hvd::net

#endif  // BASE_NET_WIRE_H_
