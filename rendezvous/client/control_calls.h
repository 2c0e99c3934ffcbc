// The administrative calls to a job's daemon: status, drain and stop.
#ifndef RENDEZVOUS_CLIENT_CONTROL_CALLS_H_
#define RENDEZVOUS_CLIENT_CONTROL_CALLS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/rendezvous.pb.h"
#include "rendezvous/security/job_credentials.h"

namespace hvd::rendezvous::client {

// Each function makes one call, without retries, to the daemon at `address` (numeric
// "address:port") and blocks until it answers. Thread-safe.
// Errors:
//   - Unavailable: no daemon of this job answers at the address; names the address.
//   - DeadlineExceeded: there is no answer within `timeout`.
//   - Others: those of the call in proto/rendezvous.proto.
absl::StatusOr<pb::GetStatusResponse> AskStatus(const std::string& address,
                                                const security::PeerCredentials& credentials,
                                                absl::Duration timeout);
absl::StatusOr<pb::DrainResponse> AskToDrain(const std::string& address,
                                             const security::PeerCredentials& credentials,
                                             const pb::DrainRequest& request,
                                             absl::Duration timeout);
absl::StatusOr<pb::StopResponse> AskToStop(const std::string& address,
                                           const security::PeerCredentials& credentials,
                                           const pb::StopRequest& request, absl::Duration timeout);

}  // namespace hvd::rendezvous::client

#endif  // RENDEZVOUS_CLIENT_CONTROL_CALLS_H_
