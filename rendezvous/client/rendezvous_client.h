// The client interface for a worker's calls to the rendezvous daemon.
#ifndef RENDEZVOUS_CLIENT_RENDEZVOUS_CLIENT_H_
#define RENDEZVOUS_CLIENT_RENDEZVOUS_CLIENT_H_

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/rendezvous.pb.h"

namespace hvd::rendezvous::client {

// Blocking calls, each with a timeout. Thread-safe.
// Errors of every call, besides its errors in proto/rendezvous.proto:
//   - Unavailable: the daemon was unreachable until the timeout, in spite of retries.
//   - DeadlineExceeded: the timeout passed while the call was parked.
//   - Cancelled: CancelAll() was called.
class RendezvousClient {
 public:
  virtual ~RendezvousClient() = default;

  virtual absl::StatusOr<pb::JoinWorldResponse> JoinWorld(const pb::JoinWorldRequest& request,
                                                          absl::Duration timeout) = 0;
  virtual absl::StatusOr<pb::GetMembersResponse> GetMembers(const pb::GetMembersRequest& request,
                                                            absl::Duration timeout) = 0;
  virtual absl::StatusOr<pb::WatchEpochResponse> WatchEpoch(const pb::WatchEpochRequest& request,
                                                            absl::Duration timeout) = 0;
  virtual absl::StatusOr<pb::ExchangeResponse> Exchange(const pb::ExchangeRequest& request,
                                                        absl::Duration timeout) = 0;
  virtual absl::StatusOr<pb::ReportResponse> Report(const pb::ReportRequest& request,
                                                    absl::Duration timeout) = 0;
  virtual absl::StatusOr<pb::ReportStallResponse> ReportStall(const pb::ReportStallRequest& request,
                                                              absl::Duration timeout) = 0;
  virtual absl::StatusOr<pb::GetStatusResponse> GetStatus(absl::Duration timeout) = 0;

  // Ends all calls in flight, and every later one, with Cancelled.
  virtual void CancelAll() = 0;
};

}  // namespace hvd::rendezvous::client

#endif  // RENDEZVOUS_CLIENT_RENDEZVOUS_CLIENT_H_
