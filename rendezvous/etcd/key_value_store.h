// A key-value store with the interface of etcd: an etcd cluster, or a fake in tests.
#ifndef RENDEZVOUS_ETCD_KEY_VALUE_STORE_H_
#define RENDEZVOUS_ETCD_KEY_VALUE_STORE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/etcd.pb.h"

namespace hvd::rendezvous::etcd {

// Thread-safe. Each call returns within `limit`; one without that argument, within the length of a
// lease (LeaseSchedule::kLease).
// Errors of every call:
//   - Unavailable, DeadlineExceeded, and others: no member with a quorum answered. The change may
//     have been applied, or may still be applied later.
//   - ResourceExhausted: the store has no space left.
//   - InvalidArgument, PermissionDenied, Unauthenticated, FailedPrecondition: the store rejects the
//     call.
class KeyValueStore {
 public:
  virtual ~KeyValueStore() = default;

  // The store's name in messages: "a:2379,b:2379".
  virtual const std::string& name() const = 0;

  // A linearizable read: never answered by a member that is cut off from the quorum.
  virtual absl::StatusOr<etcdserverpb::RangeResponse> Range(
      const etcdserverpb::RangeRequest& request, absl::Duration limit) = 0;

  virtual absl::StatusOr<etcdserverpb::TxnResponse> Txn(
      const etcdserverpb::TxnRequest& request) = 0;

  // Returns the id of a new lease. `length` is rounded to whole seconds.
  virtual absl::StatusOr<int64_t> GrantLease(absl::Duration length) = 0;

  // Refreshes the lease. Returns false if it has expired.
  virtual absl::StatusOr<bool> KeepAlive(int64_t lease, absl::Duration limit) = 0;

  // Ends the lease and deletes the keys that are attached to it.
  virtual absl::Status RevokeLease(int64_t lease) = 0;
};

}  // namespace hvd::rendezvous::etcd

#endif  // RENDEZVOUS_ETCD_KEY_VALUE_STORE_H_
