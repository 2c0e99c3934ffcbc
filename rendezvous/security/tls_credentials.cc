#include "rendezvous/security/tls_credentials.h"

#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "base/crypto.h"
#include "grpc/grpc.h"
#include "grpc/support/log.h"
#include "grpcpp/security/auth_metadata_processor.h"

namespace hvd::rendezvous::security {
namespace {

class TokenCheck : public grpc::AuthMetadataProcessor {
 public:
  using IsValid = std::function<bool(absl::string_view)>;

  explicit TokenCheck(IsValid is_valid) : is_valid_(std::move(is_valid)) {}

  // gRPC calls Process on its own thread then, and starts no other one for each call.
  bool IsBlocking() const override { return false; }

  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext*, OutputMetadata*,
                       OutputMetadata*) override {
    // Exactly one token: with several, this check and the service might look at different ones.
    const auto [first, last] = metadata.equal_range(kTokenMetadataKey);
    const bool one = first != last && std::next(first) == last;
    if (!one || !is_valid_({first->second.data(), first->second.size()})) {
      return grpc::Status(grpc::StatusCode::UNAUTHENTICATED, "no valid job token");
    }
    return grpc::Status::OK;
  }

 private:
  const IsValid is_valid_;
};

// Adds the token to the metadata of every call of a channel. gRPC does so only on secure channels.
class TokenSource : public grpc::MetadataCredentialsPlugin {
 public:
  explicit TokenSource(std::string token) : token_(std::move(token)) {}

  bool IsBlocking() const override { return false; }
  const char* GetType() const override { return "horovod_token"; }
  std::string DebugString() override { return GetType(); }

  grpc::Status GetMetadata(grpc::string_ref, grpc::string_ref, const grpc::AuthContext&,
                           std::multimap<std::string, std::string>* metadata) override {
    metadata->emplace(kTokenMetadataKey, token_);
    return grpc::Status::OK;
  }

 private:
  const std::string token_;
};

// Logs failed assertions only. gRPC would log a line on stderr for every peer that fails the TLS
// handshake, such as a port scanner. Errors of our own calls are returned as a status.
void LogOnlyAssertions(gpr_log_func_args* said) {
  if (!absl::StrContains(said->message, "assertion failed")) return;
  std::fprintf(stderr, "gRPC: %s:%d: %s\n", said->file, said->line, said->message);
}

}  // namespace

// Keeps one reference to gRPC for the whole process. Otherwise the release of the last one shuts
// gRPC down, on a detached thread if it happens on one of gRPC's threads; that would race with the
// exit of the process and could change its exit code.
void KeepGrpc() {
  static std::once_flag once;
  std::call_once(once, [] {
    gpr_set_log_function(LogOnlyAssertions);
    grpc_init();
  });
}

std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(const PeerCredentials& credentials) {
  return MakeServerCredentials(credentials, [token = credentials.token](absl::string_view given) {
    return ConstantTimeEquals(token, given);
  });
}

std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(const PeerCredentials& credentials,
                                                               TokenCheck::IsValid is_valid) {
  KeepGrpc();
  grpc::SslServerCredentialsOptions options(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = credentials.ca_certificate;
  options.pem_key_cert_pairs.push_back({credentials.private_key, credentials.certificate});
  auto made = grpc::SslServerCredentials(options);
  made->SetAuthMetadataProcessor(std::make_shared<TokenCheck>(std::move(is_valid)));
  return made;
}

std::shared_ptr<grpc::ChannelCredentials> MakeChannelCredentials(
    const PeerCredentials& credentials) {
  KeepGrpc();
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = credentials.ca_certificate;
  options.pem_private_key = credentials.private_key;
  options.pem_cert_chain = credentials.certificate;
  return grpc::CompositeChannelCredentials(
      grpc::SslCredentials(options),
      grpc::MetadataCredentialsFromPlugin(std::make_unique<TokenSource>(credentials.token)));
}

}  // namespace hvd::rendezvous::security
