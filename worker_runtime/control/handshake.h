// The first bytes of a control connection: both ends prove that they know the epoch's secret,
// without showing it.
//
//   member  -> rank 0   magic, epoch, size, rank, nonce of the member
//   rank 0  -> member   nonce of rank 0, HMAC-SHA256(secret, "root"   + all of the above + binding)
//   member  -> rank 0   HMAC-SHA256(secret, "member" + the same)
//   rank 0  -> member   one byte: welcome
//
// The binding is that of the TLS session under it, if there is one (Wire::Binding): who hands on
// what both ends say has two sessions, and the proofs of one are worth nothing in the other.
//
// Every part has a fixed length, so that nothing of a stranger's is kept, and the two proofs differ
// in their label, so that none can be sent back.
#ifndef WORKER_RUNTIME_CONTROL_HANDSHAKE_H_
#define WORKER_RUNTIME_CONTROL_HANDSHAKE_H_

#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "collectives/types.h"

namespace hvd::worker_runtime::control {

// Rank 0's end. Pure but for the nonce; not thread-safe.
class RootHandshake {
 public:
  RootHandshake(const collectives::GroupInfo& group, std::string binding)
      : group_(group), binding_(std::move(binding)) {}

  // How many bytes the next Step takes; 0: the peer has proved that it is `peer_rank()`.
  size_t wanted() const;
  // Returns what to answer.   PermissionDenied: hang up.
  absl::StatusOr<std::string> Step(absl::string_view bytes);
  int peer_rank() const { return peer_rank_; }

 private:
  absl::StatusOr<std::string> OnHello(absl::string_view hello);
  absl::StatusOr<std::string> OnProof(absl::string_view proof);

  const collectives::GroupInfo& group_;
  const std::string binding_;
  int peer_rank_ = -1;
  std::string transcript_;  // hello and both nonces
  bool done_ = false;
};

// A member's end. Pure but for the nonce; not thread-safe.
class MemberHandshake {
 public:
  MemberHandshake(const collectives::GroupInfo& group, std::string binding)
      : group_(group), binding_(std::move(binding)) {}

  // The first bytes to send.
  absl::StatusOr<std::string> Start();
  // As above; 0: rank 0 has proved itself and bids us welcome.
  size_t wanted() const;
  absl::StatusOr<std::string> Step(absl::string_view bytes);

 private:
  absl::StatusOr<std::string> OnChallenge(absl::string_view challenge);

  const collectives::GroupInfo& group_;
  const std::string binding_;
  std::string transcript_;
  bool challenged_ = false;
  bool done_ = false;
};

}  // namespace hvd::worker_runtime::control

#endif  // WORKER_RUNTIME_CONTROL_HANDSHAKE_H_
