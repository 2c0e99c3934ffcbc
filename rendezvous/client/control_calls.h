// Control calls to a job's daemon, for people and schedulers: status and drain.
#ifndef RENDEZVOUS_CLIENT_CONTROL_CALLS_H_
#define RENDEZVOUS_CLIENT_CONTROL_CALLS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/rendezvous.pb.h"
#include "rendezvous/security/job_credentials.h"

namespace hvd::rendezvous::client {

// Each makes one call, without retries, to the daemon at `address` (numeric "address:port") and
// waits for its answer. Thread-safe.
// Errors: those in proto/rendezvous.proto, and
//   - Unavailable: nothing answers there, or not this job's daemon; names the address.
//   - DeadlineExceeded: there is no answer within `timeout`.
absl::StatusOr<pb::GetStatusResponse> AskStatus(const std::string& address,
                                                const security::PeerCredentials& credentials,
                                                absl::Duration timeout);
absl::StatusOr<pb::DrainResponse> AskToDrain(const std::string& address,
                                             const security::PeerCredentials& credentials,
                                             const pb::DrainRequest& request,
                                             absl::Duration timeout);

}  // namespace hvd::rendezvous::client

#endif  // RENDEZVOUS_CLIENT_CONTROL_CALLS_H_
