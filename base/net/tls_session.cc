#include "base/net/tls_session.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/base/internal/raw_logging.h"
#include "absl/strings/str_cat.h"
#include "base/net/tcp_socket.h"
#include "base/status_macros.h"

namespace hvd::net {
namespace {

constexpr char kCipherSuite[] = "TLS_AES_128_GCM_SHA256";
constexpr absl::string_view kBindingLabel = "EXPORTER-horovod-binding";
constexpr size_t kBindingBytes = 32;

std::string LastReason() {
  const char* reason = ERR_reason_error_string(ERR_peek_error());
  return reason == nullptr ? "unknown" : reason;
}

absl::Status OpenSslError(absl::string_view step) {
  return absl::InternalError(absl::StrCat("OpenSSL failed to ", step, ": ", LastReason()));
}

// A custom socket BIO. OpenSSL's socket BIO writes without MSG_NOSIGNAL, so a lost peer would raise
// SIGPIPE.
int WriteBio(BIO* bio, const char* data, int size) {
  BIO_clear_retry_flags(bio);
  const int fd = *static_cast<int*>(BIO_get_data(bio));
  ssize_t sent;
  do {
    sent = send(fd, data, static_cast<size_t>(size), MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0 && errno == EAGAIN) BIO_set_retry_write(bio);
  return static_cast<int>(sent);
}

int ReadBio(BIO* bio, char* buffer, int size) {
  BIO_clear_retry_flags(bio);
  const int fd = *static_cast<int*>(BIO_get_data(bio));
  ssize_t got;
  do {
    got = recv(fd, buffer, static_cast<size_t>(size), 0);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && errno == EAGAIN) BIO_set_retry_read(bio);
  return static_cast<int>(got);
}

// A flush must succeed, or OpenSSL fails the handshake. BIO_CTRL_EOF is answered with 0: otherwise
// OpenSSL 3 takes a stream that ends without a close_notify for a violation of the protocol, and a
// killed peer would look like an attack.
long ControlBio(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

const BIO_METHOD* SocketBio() {
  static const BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "hvd socket");
    if (made != nullptr) {
      BIO_meth_set_write(made, WriteBio);
      BIO_meth_set_read(made, ReadBio);
      BIO_meth_set_ctrl(made, ControlBio);
    }
    return made;
  }();
  return method;
}

// For encrypted keys. Without a callback OpenSSL would ask for the password on the terminal.
int NoPassword(char*, int, int, void*) { return -1; }

template <typename Read, typename Free>
auto FromPem(const std::string& pem, Read read, Free free) {
  std::unique_ptr<BIO, decltype(&BIO_free)> bio(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
  return std::unique_ptr<std::remove_pointer_t<decltype(read(nullptr, nullptr, nullptr, nullptr))>,
                         Free>(read(bio.get(), nullptr, NoPassword, nullptr), free);
}

absl::Status Believe(SSL_CTX* context, const TlsIdentity& identity) {
  const auto root = FromPem(identity.authority, PEM_read_bio_X509, &X509_free);
  if (root == nullptr) {
    return absl::InvalidArgumentError("the authority's certificate can't be read");
  }
  if (X509_STORE_add_cert(SSL_CTX_get_cert_store(context), root.get()) != 1 ||
      // Hosts have client certificates, even if both ends are hosts. This also refuses the daemon's
      // certificate, which is only for servers, in place of a host's.
      SSL_CTX_set_purpose(context, identity.server.empty() ? X509_PURPOSE_SSL_CLIENT
                                                           : X509_PURPOSE_SSL_SERVER) != 1 ||
      // No name, if it is empty: any host's certificate is valid.
      X509_VERIFY_PARAM_set1_host(SSL_CTX_get0_param(context), identity.server.data(),
                                  identity.server.size()) != 1) {
    return OpenSslError("take the authority's certificate");
  }
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return absl::OkStatus();
}

absl::Status Show(SSL_CTX* context, const TlsIdentity& identity) {
  const auto certificate = FromPem(identity.certificate, PEM_read_bio_X509, &X509_free);
  const auto key = FromPem(identity.private_key, PEM_read_bio_PrivateKey, &EVP_PKEY_free);
  if (certificate == nullptr) return absl::InvalidArgumentError("the certificate can't be read");
  if (key == nullptr) return absl::InvalidArgumentError("the private key can't be read");
  if (SSL_CTX_use_certificate(context, certificate.get()) != 1) {
    return OpenSslError("take the certificate");
  }
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1) {
    return absl::InvalidArgumentError("the private key is not the certificate's");
  }
  return absl::OkStatus();
}

absl::Status Configure(SSL_CTX* context, const TlsIdentity& identity) {
  if (SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_ciphersuites(context, kCipherSuite) != 1 ||
      // No session tickets: sessions are never resumed.
      SSL_CTX_set_num_tickets(context, 0) != 1) {
    return OpenSslError("set up TLS 1.3");
  }
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  // Partial writes, and retries from a moved buffer, as Write's contract allows. Read-ahead takes
  // several records per recv.
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_read_ahead(context, 1);
  RETURN_IF_ERROR(Believe(context, identity));
  return Show(context, identity);
}

int Clamped(size_t size) {
  return static_cast<int>(std::min<size_t>(size, std::numeric_limits<int>::max()));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const TlsContext>> TlsContext::Create(const TlsIdentity& identity,
                                                                     uint64_t records_per_key) {
  // SSL_get_error and LastReason read this thread's error queue, where an earlier call may have
  // left an entry. So every use of OpenSSL here begins with this.
  ERR_clear_error();
  std::shared_ptr<const TlsContext> made(
      new TlsContext(SSL_CTX_new(TLS_method()), records_per_key));
  if (made->context_ == nullptr || SocketBio() == nullptr) return OpenSslError("begin");
  RETURN_IF_ERROR(Configure(made->context_, identity));
  return made;
}

TlsContext::~TlsContext() { SSL_CTX_free(context_); }

TlsSession::TlsSession(std::shared_ptr<const TlsContext> context, int fd, TlsEnd end)
    : context_(std::move(context)), fd_(fd), ssl_(SSL_new(context_->context_)) {
  BIO* const bio = BIO_new(SocketBio());
  if (ssl_ == nullptr || bio == nullptr) ABSL_RAW_LOG(FATAL, "no memory for a TLS session");
  BIO_set_data(bio, &fd_);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_, bio, bio);  // takes it
  if (end == TlsEnd::kAccepts) {
    SSL_set_accept_state(ssl_);
  } else {
    SSL_set_connect_state(ssl_);
  }
}

TlsSession::~TlsSession() { SSL_free(ssl_); }

Opening TlsSession::Open() {
  ERR_clear_error();
  const int returned = SSL_do_handshake(ssl_);
  if (returned == 1) return Opening::kDone;
  if (!Explain(returned).would_block) return Opening::kFailed;
  // Either may be wanted in both directions: a handshake reads and writes in turn.
  return SSL_want_write(ssl_) ? Opening::kWantsToWrite : Opening::kWantsToRead;
}

IoResult TlsSession::Read(char* buffer, size_t size) {
  ERR_clear_error();
  const int got = SSL_read(ssl_, buffer, Clamped(size));
  return got > 0 ? IoResult{static_cast<size_t>(got)} : Explain(got);
}

IoResult TlsSession::Write(absl::string_view data) {
  if (data.empty()) return IoResult();
  ERR_clear_error();
  // A write that would block must be repeated unchanged: no key update may come in between.
  if (!unfinished_) RenewKey();
  const int sent = SSL_write(ssl_, data.data(), Clamped(data.size()));
  const IoResult result = sent > 0 ? IoResult{static_cast<size_t>(sent)} : Explain(sent);
  unfinished_ = result.would_block;
  return result;
}

// Counts a record, and requests new keys when the limit is reached. OpenSSL sends the key update
// before the next record, and reads nothing until it is sent; the other direction keeps its keys.
// So a full socket postpones it: two ends that both waited to send theirs would wait forever.
void TlsSession::RenewKey() {
  if (++records_ <= context_->records_per_key_) return;
  pollfd socket = {fd_, POLLOUT, 0};
  if (poll(&socket, 1, 0) <= 0) return;
  if (SSL_key_update(ssl_, SSL_KEY_UPDATE_NOT_REQUESTED) == 1) records_ = 1;
}

IoResult TlsSession::Explain(int returned) {
  // SSL_ERROR_SSL is a violation of the protocol: a bad certificate or modified bytes. An error of
  // the socket (SYSCALL) is a lost connection. Anything else is the end of the stream.
  const int why = SSL_get_error(ssl_, returned);
  IoResult result;
  if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) {
    result.would_block = true;
    return result;
  }
  result.end = true;
  if (why == SSL_ERROR_SSL) {
    unsafe_ = true;
    const int reason = ERR_GET_REASON(ERR_peek_error());
    const bool changed = reason == SSL_R_DECRYPTION_FAILED_OR_BAD_RECORD_MAC;
    failure_ = absl::StrCat(changed ? "what it sent was changed on the way" : "no safe connection",
                            " (TLS: ", LastReason(), ")");
  } else if (why == SSL_ERROR_SYSCALL && returned < 0 && errno != 0) {
    failure_ = strerror(errno);
    result.silent = IsSilence(errno);
  }
  ERR_clear_error();
  return result;
}

bool TlsSession::heard() const { return BIO_number_read(SSL_get_rbio(ssl_)) > 0; }

bool TlsSession::HasBuffered() const { return SSL_has_pending(ssl_) == 1; }

std::string TlsSession::Binding() const {
  std::string binding(kBindingBytes, '\0');
  if (SSL_export_keying_material(ssl_, reinterpret_cast<unsigned char*>(&binding[0]),
                                 binding.size(), kBindingLabel.data(), kBindingLabel.size(),
                                 nullptr, 0, 0) != 1) {
    // Can't fail with an open session. If it failed, aborting is safer than proofs without a
    // binding.
    ABSL_RAW_LOG(FATAL, "OpenSSL exports no key of a TLS session");
  }
  return binding;
}

void TlsSession::EndWriting() {
  ERR_clear_error();
  // Sends a close_notify and does not wait for the peer's. Errors are of no interest: the
  // connection ends in any case.
  SSL_shutdown(ssl_);
  ERR_clear_error();
}

}  // namespace hvd::net
