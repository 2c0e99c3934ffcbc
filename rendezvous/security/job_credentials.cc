#include "rendezvous/security/job_credentials.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/crypto.h"
#include "base/status_macros.h"
#include "rendezvous/security/certificates.h"

namespace hvd::rendezvous::security {
namespace {

// Immutable after Create, hence thread-safe: OpenSSL allows concurrent use of one key for signing.
class JobAuthorityImpl : public JobAuthority {
 public:
  JobAuthorityImpl(CertifiedKey authority, std::string authority_pem)
      : authority_(std::move(authority)),
        authority_pem_(std::move(authority_pem)),
        token_(absl::BytesToHexString(RandomBytes(32))) {}

  absl::StatusOr<PeerCredentials> IssueForDaemon() override {
    return Issue(CertificateRole::kServer, kDaemonTlsName, kDaemonTlsName);
  }

  absl::StatusOr<PeerCredentials> IssueForHost(absl::string_view host) override {
    return Issue(CertificateRole::kClient, host, "");
  }

 private:
  absl::StatusOr<PeerCredentials> Issue(CertificateRole role, absl::string_view common_name,
                                        absl::string_view dns_name) {
    ASSIGN_OR_RETURN(const CertifiedKey leaf, Certify(role, common_name, dns_name, &authority_));
    PeerCredentials credentials;
    credentials.token = token_;
    credentials.ca_certificate = authority_pem_;
    ASSIGN_OR_RETURN(credentials.certificate, CertificatePem(leaf));
    ASSIGN_OR_RETURN(credentials.private_key, PrivateKeyPem(leaf));
    return credentials;
  }

  const CertifiedKey authority_;
  const std::string authority_pem_;
  const std::string token_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<JobAuthority>> JobAuthority::Create(absl::string_view job_id) {
  ASSIGN_OR_RETURN(CertifiedKey authority,
                   Certify(CertificateRole::kAuthority, absl::StrCat("horovod job ", job_id), "",
                           /*issuer=*/nullptr));
  ASSIGN_OR_RETURN(std::string pem, CertificatePem(authority));
  return std::make_unique<JobAuthorityImpl>(std::move(authority), std::move(pem));
}

std::string NewJobId() { return absl::BytesToHexString(RandomBytes(16)); }

}  // namespace hvd::rendezvous::security
