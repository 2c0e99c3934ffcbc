// TLS 1.3 sessions between two holders of certificates of one authority.
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

// The credentials of one end: its own, and the authority that it trusts. PEM texts.
struct TlsIdentity {
  std::string authority;
  std::string certificate;
  std::string private_key;
};

// The context shared by the sessions of one process. Immutable; thread-safe.
class TlsContext {
 public:
  // The number of records for which a key is used, each of 16 KiB at most. Then the session takes
  // the next key, long before AES-GCM's bound of 2^24.5 (RFC 8446, 5.5).
  static constexpr uint64_t kRecordsPerKey = uint64_t{1} << 22;

  // Errors:
  //   - InvalidArgument: a text can't be read, or the key is not the certificate's; says which.
  //   - Internal: OpenSSL fails; says at what.
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

// The role of this end of a connection.
enum class TlsEnd { kAccepts, kConnects };

// The state of the opening of a connection.
enum class Opening { kDone, kWantsToRead, kWantsToWrite, kFailed };

// One end of one connection; not thread-safe. Both ends show a certificate for hosts; the daemon's
// certificate does not open a session. Never raises SIGPIPE.
class TlsSession {
 public:
  // Borrows `fd`, a non-blocking socket. Once that is closed only the destructor may be called.
  TlsSession(std::shared_ptr<const TlsContext> context, int fd, TlsEnd end);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  // One step of the handshake. The end that connects is done before the other one has checked its
  // certificate: it learns the outcome when it reads.
  Opening Open();

  // As ReadSome and WriteSome of base/fd.h. A write that would block must be repeated with the same
  // bytes, with at most more bytes appended. Bytes that do not come from the other end, or were
  // changed on the way, end the stream permanently. REQUIRES: Open() is done.
  IoResult Read(char* buffer, size_t size);
  IoResult Write(absl::string_view data);

  // Whether the session holds bytes, or a part of a record, that it has taken from the socket and
  // that Read has not returned yet. poll does not report these.
  bool HasBuffered() const;

  // 32 bytes that both ends of this session have, and no other session. REQUIRES: Open() is done.
  std::string Binding() const;

  // Announces the end of the stream to the other end; best effort.
  void EndWriting();

  // Why Open has failed or the stream has ended, in words that can follow a subject; empty: the
  // other end is gone.
  const std::string& failure() const { return failure_; }
  // Whether the failure is one that TLS protects from: a stranger, or bytes that were changed.
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
