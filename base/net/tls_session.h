// TLS 1.3 on a connection whose two ends hold certificates of one authority.
#ifndef BASE_NET_TLS_SESSION_H_
#define BASE_NET_TLS_SESSION_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/fd.h"

struct ssl_ctx_st;  // OpenSSL's SSL_CTX
struct ssl_st;      // OpenSSL's SSL

namespace hvd::net {

// What one end shows, and whom it believes. PEM texts.
struct TlsIdentity {
  std::string authority;
  std::string certificate;
  std::string private_key;
};

// What the sessions of one process have in common. Immutable; thread-safe.
class TlsContext {
 public:
  // A key serves so many records, each of 16 KiB at most; then the session takes the next one, long
  // before AES-GCM's bound of 2^24.5 (RFC 8446, 5.5).
  static constexpr uint64_t kRecordsPerKey = uint64_t{1} << 22;

  // InvalidArgument: one of the texts is not what it should be; says which.   Internal: OpenSSL
  // fails; says at what.
  static absl::StatusOr<std::shared_ptr<const TlsContext>> Create(
      const TlsIdentity& identity, uint64_t records_per_key = kRecordsPerKey);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

 private:
  friend class TlsSession;
  TlsContext(ssl_ctx_st* context, uint64_t records_per_key)
      : context_(context), records_per_key_(records_per_key) {}

  ssl_ctx_st* const context_;
  const uint64_t records_per_key_;
};

// Which end of a connection this is.
enum class TlsEnd { kAccepts, kConnects };

// How far the opening of a connection has come.
enum class Opening { kDone, kWantsToRead, kWantsToWrite, kFailed };

// One end of one connection; not thread-safe. Both ends show a certificate for hosts, so the
// daemon's is none that opens a session. Never raises SIGPIPE.
class TlsSession {
 public:
  // Borrows `fd`, a socket that does not block; once that is closed nothing but the destructor may
  // be called.
  TlsSession(std::shared_ptr<const TlsContext> context, int fd, TlsEnd end);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  // One step of the handshake. The end that connects is done before the other one has checked its
  // certificate: it hears of that when it reads.
  Opening Open();

  // As ReadSome and WriteSome of base/fd.h; REQUIRES: Open() is done. A write that would block must
  // be repeated with the same bytes, and more behind them at most. What does not come from the
  // other end, or was changed on the way, ends the stream, for good.
  IoResult Read(char* buffer, size_t size);
  IoResult Write(absl::string_view data);

  // Whether bytes have been taken from the socket that Read has not given yet, or not all of a
  // record: poll does not tell of them.
  bool HasBuffered() const;

  // 32 bytes that both ends of this session have, and no other session. REQUIRES: Open() is done.
  std::string Binding() const;

  // Tells the other end that nothing more will come; best effort.
  void EndWriting();

  // Why Open has failed or the stream has ended, in words that can follow a subject; empty: the
  // other end is gone.
  const std::string& failure() const { return failure_; }
  // Whether that is what TLS is for: a stranger, or bytes that were changed.
  bool unsafe() const { return unsafe_; }

 private:
  void RenewKey();
  IoResult Explain(int returned);

  const std::shared_ptr<const TlsContext> context_;
  int fd_;
  ssl_st* ssl_;
  uint64_t records_ = 0;     // with this key
  bool unfinished_ = false;  // a write would have blocked
  std::string failure_;
  bool unsafe_ = false;
};

}  // namespace hvd::net

#endif  // BASE_NET_TLS_SESSION_H_
