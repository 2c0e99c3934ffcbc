// A key-value store with the calls of etcd: the cluster, or a fake.
#ifndef RENDEZVOUS_ETCD_KEY_VALUE_STORE_H_
#define RENDEZVOUS_ETCD_KEY_VALUE_STORE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/etcd.pb.h"

namespace hvd::rendezvous::etcd {

// Thread-safe. Calls last for seconds at most.
// Errors, of each call:
//   - Unavailable, DeadlineExceeded, and others: no member answered, or none with a quorum. A
//     change may have been made, or may still be made later.
//   - ResourceExhausted: it has no space.
//   - InvalidArgument, PermissionDenied, Unauthenticated, FailedPrecondition: it refuses the call.
class KeyValueStore {
 public:
  virtual ~KeyValueStore() = default;

  // Its name in messages: "a:2379,b:2379".
  virtual const std::string& name() const = 0;

  // The newest state: no member that was cut off answers.
  virtual absl::StatusOr<etcdserverpb::RangeResponse> Range(
      const etcdserverpb::RangeRequest& request) = 0;

  virtual absl::StatusOr<etcdserverpb::TxnResponse> Txn(
      const etcdserverpb::TxnRequest& request) = 0;

  // Returns the number of a new lease of this length, in whole seconds.
  virtual absl::StatusOr<int64_t> GrantLease(absl::Duration length) = 0;

  // Begins the lease's length again. False: there is no such lease any more.
  virtual absl::StatusOr<bool> KeepAlive(int64_t lease) = 0;

  // Ends it, with the keys that go with it.
  virtual absl::Status RevokeLease(int64_t lease) = 0;
};

}  // namespace hvd::rendezvous::etcd

#endif  // RENDEZVOUS_ETCD_KEY_VALUE_STORE_H_
