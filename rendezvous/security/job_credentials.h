// The credentials of one job: a certificate authority and a token. They are kept in memory and sent
// over the channels that distribute them, never in an argument or the environment of an ssh client.
// They are written to files, readable by the owner only, if an option of horovod-rendezvousd asks
// for it.
#ifndef RENDEZVOUS_SECURITY_JOB_CREDENTIALS_H_
#define RENDEZVOUS_SECURITY_JOB_CREDENTIALS_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hvd::rendezvous::security {

// The credentials of a process for a job's control calls. PEM texts.
struct PeerCredentials {
  std::string token;
  std::string ca_certificate;
  std::string certificate;
  std::string private_key;
};

// The only name in the server's certificate. Clients expect it, whatever the daemon's address.
inline constexpr char kDaemonTlsName[] = "horovod-rendezvous";

// Stands for all hosts, if they are not known in advance. No host can have this name.
inline constexpr char kAnyHost[] = "any host";

// The certificate authority of one job (ECDSA P-256, with a validity longer than any plausible
// job). Thread-safe.
class JobAuthority {
 public:
  // Creates a new CA and a new 256-bit token.
  // Errors:
  //   - Internal: OpenSSL failed; says how.
  static absl::StatusOr<std::unique_ptr<JobAuthority>> Create(absl::string_view job_id);
  virtual ~JobAuthority() = default;

  // Issue credentials for the daemon, whose certificate has the name kDaemonTlsName, and for a
  // host's agent and workers. With a host's credentials an agent can attach as that host only (see
  // PeerHost); with those of kAnyHost, as any host.
  virtual absl::StatusOr<PeerCredentials> IssueForDaemon() = 0;
  virtual absl::StatusOr<PeerCredentials> IssueForHost(absl::string_view host) = 0;
};

// Creates a job id: 16 random bytes in hexadecimal, from the kernel's generator.
std::string NewJobId();

}  // namespace hvd::rendezvous::security

#endif  // RENDEZVOUS_SECURITY_JOB_CREDENTIALS_H_
