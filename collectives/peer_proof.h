// The proof of one rank to another that it knows the epoch's secret, without showing it.
#ifndef COLLECTIVES_PEER_PROOF_H_
#define COLLECTIVES_PEER_PROOF_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "base/crypto.h"
#include "base/ids.h"

namespace hvd::collectives {

// What a proof is about. It is good for this alone: not for another protocol, epoch or connection,
// and it can't be sent back to who gave it.
struct ProofSubject {
  absl::string_view protocol;  // "gloo link"
  Epoch epoch;
  int size = 0;  // of the group
  int from = 0;
  int to = 0;  // kEveryRank: it is for all others
  // What the ranks have said to each other before, with a fresh nonce of the one that checks, so
  // that a proof overheard elsewhere is worth nothing.
  absl::string_view transcript;
  // What both ends alone know of the channel below (net::Wire::Binding), so that who hands on what
  // both say has proofs for the wrong channel; empty if there is none.
  absl::string_view binding = {};
};

inline constexpr int kEveryRank = -1;
inline constexpr size_t kProofBytes = kHmacSha256Bytes;
inline constexpr size_t kNonceBytes = 32;

// kNonceBytes random bytes. Thread-safe, as all here.
std::string MakeNonce();

// HMAC-SHA256 under `secret`; kProofBytes long.
std::string MakeProof(absl::string_view secret, const ProofSubject& subject);

// Takes equally long whatever `proof` holds.
bool CheckProof(absl::string_view secret, const ProofSubject& subject, absl::string_view proof);

}  // namespace hvd::collectives

#endif  // COLLECTIVES_PEER_PROOF_H_
