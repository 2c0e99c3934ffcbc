// How two ranks show each other that they know the epoch's secret without telling it. Pure.
#ifndef COLLECTIVES_GLOO_LINK_PROOF_H_
#define COLLECTIVES_GLOO_LINK_PROOF_H_

#include <string>

#include "absl/strings/string_view.h"
#include "base/crypto.h"
#include "base/ids.h"

namespace hvd::collectives::gloo::link {

// One direction of one connection. The nonces are fresh per connection, so that a proof overheard
// elsewhere is worth nothing; both ranks are named, so that a proof can't be sent back to who gave
// it.
struct ProofSubject {
  Epoch epoch;
  int size = 0;  // of the group
  int from = 0;
  int to = 0;
  absl::string_view from_nonce;
  absl::string_view to_nonce;
  // What both ends alone know of the channel below, so that a proof is good for it alone; may be
  // empty.
  absl::string_view binding;
};

inline constexpr size_t kProofBytes = kHmacSha256Bytes;
inline constexpr size_t kNonceBytes = 16;

// kNonceBytes random bytes.
std::string MakeNonce();

// HMAC-SHA256 under `secret`; kProofBytes long.
std::string MakeProof(absl::string_view secret, const ProofSubject& subject);

// Takes equally long whatever `proof` holds.
bool CheckProof(absl::string_view secret, const ProofSubject& subject, absl::string_view proof);

}  // namespace hvd::collectives::gloo::link

#endif  // COLLECTIVES_GLOO_LINK_PROOF_H_
