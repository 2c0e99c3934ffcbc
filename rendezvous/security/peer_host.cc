#include "rendezvous/security/peer_host.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "grpc/grpc_security_constants.h"
#include "rendezvous/security/job_credentials.h"

namespace hvd::rendezvous::security {
namespace {

constexpr size_t kMostNameBytes = 64;  // the limit of a common name; see Certify

}  // namespace

std::string PeerHost(const grpc::AuthContext& context) {
  // Only without TLS, as in tests: the server's credentials require a client certificate.
  if (!context.IsPeerAuthenticated()) return kAnyHost;
  const std::vector<grpc::string_ref> names =
      context.FindPropertyValues(GRPC_X509_CN_PROPERTY_NAME);
  // Several names, or none, match no host: no certificate of ours has them.
  return names.size() == 1 ? std::string(names[0].begin(), names[0].end()) : "";
}

absl::Status CheckPeerHost(absl::string_view peer_host, absl::string_view host) {
  // Certify cuts names at this length. So hosts with the same first 64 bytes are not told apart;
  // the token is checked anyway.
  if (peer_host == kAnyHost || peer_host == host.substr(0, kMostNameBytes)) {
    return absl::OkStatus();
  }
  return absl::PermissionDeniedError(
      absl::StrCat("its certificate is host ", peer_host, "'s, and not host ", host, "'s"));
}

}  // namespace hvd::rendezvous::security
