// Checks of the numbers and addresses in workers' requests, before the daemon uses or records them.
#ifndef RENDEZVOUS_TRANSPORT_REQUEST_CHECKS_H_
#define RENDEZVOUS_TRANSPORT_REQUEST_CHECKS_H_

#include "absl/status/status.h"
#include "proto/rendezvous.pb.h"

namespace hvd::rendezvous::transport {

// Errors of all functions:
//   - InvalidArgument: a field has an impossible value; names the field, the value, and what is
//     possible.
absl::Status Check(const pb::JoinWorldRequest& request);
absl::Status Check(const pb::ExchangeRequest& request);
absl::Status Check(const pb::ReportRequest& request);
absl::Status Check(const pb::ReportStallRequest& request);

}  // namespace hvd::rendezvous::transport

#endif  // RENDEZVOUS_TRANSPORT_REQUEST_CHECKS_H_
