// Mutually authenticated TLS 1.3 sessions between holders of certificates of one authority.
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

// The credentials of one end, as PEM texts: its certificate and key, and the authority it trusts.
struct TlsIdentity {
  std::string authority;
  std::string certificate;
  std::string private_key;
  // The name in the certificate of the server at the other end of each session; empty: the other
  // ends are hosts.
  std::string server = {};
};

// The context shared by the sessions of one process. Immutable; thread-safe.
class TlsContext {
 public:
  // The number of records, of 16 KiB at most, after which the session changes its key, as soon as
  // the socket has room: far below the limit of 2^24.5 for AES-GCM (RFC 8446, 5.5).
  static constexpr uint64_t kRecordsPerKey = uint64_t{1} << 22;

  // Errors:
  //   - InvalidArgument: a PEM text can't be parsed, or the key does not match the certificate;
  //     says which.
  //   - Internal: an OpenSSL call failed; says which.
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

// The result of one step of a handshake.
enum class Opening { kDone, kWantsToRead, kWantsToWrite, kFailed };

// One end of one connection. Not thread-safe. Both ends must present a certificate of the same
// authority, a host's or, if the context says so, the named server's; each is refused in place of
// the other. Never raises SIGPIPE.
class TlsSession {
 public:
  // Borrows `fd`, a non-blocking socket. Only the destructor may be called after `fd` was closed.
  TlsSession(std::shared_ptr<const TlsContext> context, int fd, TlsEnd end);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  // Performs one step of the handshake. The connecting end is done before the accepting end has
  // checked its certificate: a refusal becomes visible at the first read.
  Opening Open();

  // As ReadSome and WriteSome of base/fd.h. A write that would block must be repeated with the same
  // bytes; more bytes may be appended. Forged or modified bytes end the stream permanently.
  // REQUIRES: Open() is done.
  IoResult Read(char* buffer, size_t size);
  IoResult Write(absl::string_view data);

  // Whether the other end has sent anything at all.
  bool heard() const;

  // Whether the session has buffered bytes, or a part of a record, that Read has not returned yet.
  // poll on the socket does not report these.
  bool HasBuffered() const;

  // The session's channel binding: 32 bytes that are equal at both ends and differ from those of
  // all other sessions. REQUIRES: Open() is done.
  std::string Binding() const;

  // Announces the end of the stream to the other end; best effort.
  void EndWriting();

  // Why Open failed or the stream ended, as the predicate of a sentence; empty: the peer is gone.
  const std::string& failure() const { return failure_; }
  // Whether the failure is a security violation: an unauthenticated peer, or modified bytes.
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
