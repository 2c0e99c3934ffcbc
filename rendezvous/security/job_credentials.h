// The secrets of one job: its certificate authority and a token. They live in memory and on the
// channels that transfer them, never in an argument or the environment of an ssh client. They are
// in files, readable by the owner only, if a horovod-rendezvousd was asked to write them.
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

// The server certificate's only name; clients expect it whatever the daemon's address is.
inline constexpr char kDaemonTlsName[] = "horovod-rendezvous";

// Stands for every host, where the hosts are not known beforehand. No host can have this name.
inline constexpr char kAnyHost[] = "any host";

// Issues certificates for one job (ECDSA P-256, valid for the job's longest plausible life).
// Thread-safe.
class JobAuthority {
 public:
  // Makes a new CA and a new 256-bit token.
  // Errors:
  //   - Internal: OpenSSL failed; says how.
  static absl::StatusOr<std::unique_ptr<JobAuthority>> Create(absl::string_view job_id);
  virtual ~JobAuthority() = default;

  // For the daemon (its certificate carries kDaemonTlsName) and for a host's agent and workers. An
  // agent can attach as that host only (see PeerHost), or as any host if it is kAnyHost.
  virtual absl::StatusOr<PeerCredentials> IssueForDaemon() = 0;
  virtual absl::StatusOr<PeerCredentials> IssueForHost(absl::string_view host) = 0;
};

// 16 random bytes as hex; from the kernel's generator.
std::string NewJobId();

}  // namespace hvd::rendezvous::security

#endif  // RENDEZVOUS_SECURITY_JOB_CREDENTIALS_H_
