// The host for which a peer's certificate was issued.
#ifndef RENDEZVOUS_SECURITY_PEER_HOST_H_
#define RENDEZVOUS_SECURITY_PEER_HOST_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "grpcpp/security/auth_context.h"

namespace hvd::rendezvous::security {

// Returns the argument of JobAuthority::IssueForHost, truncated to what a certificate can hold.
// Returns kAnyHost for a peer without a certificate, which only a server without TLS accepts.
std::string PeerHost(const grpc::AuthContext& context);

// Checks that a peer with this PeerHost may act for `host`.
// Errors:
//   - PermissionDenied: the certificate is for another host; names both.
absl::Status CheckPeerHost(absl::string_view peer_host, absl::string_view host);

}  // namespace hvd::rendezvous::security

#endif  // RENDEZVOUS_SECURITY_PEER_HOST_H_
