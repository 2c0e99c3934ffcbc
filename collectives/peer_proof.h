// The proof of one rank to another that it knows the epoch's secret, without showing it.
#ifndef COLLECTIVES_PEER_PROOF_H_
#define COLLECTIVES_PEER_PROOF_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "base/crypto.h"
#include "base/ids.h"

namespace hvd::collectives {

// The subject of a proof. The proof is valid for this alone: not for another protocol, epoch or
// connection, and it can't be sent back to its sender.
struct ProofSubject {
  absl::string_view protocol;  // "gloo link"
  Epoch epoch;
  int size = 0;  // of the group
  int from = 0;
  int to = 0;  // kEveryRank: all others
  // The earlier messages between the ranks, with a fresh nonce of the checking one, so that a proof
  // intercepted elsewhere is useless.
  absl::string_view transcript;
  // A secret of the channel below that only its two ends know (net::Wire::Binding), so that the
  // proofs that a relay passes on are for the wrong channel; empty if there is none.
  absl::string_view binding = {};
};

inline constexpr int kEveryRank = -1;
inline constexpr size_t kProofBytes = kHmacSha256Bytes;
inline constexpr size_t kNonceBytes = 32;

// kNonceBytes random bytes. Thread-safe, as all functions here.
std::string MakeNonce();

// HMAC-SHA256 under `secret`; kProofBytes long.
std::string MakeProof(absl::string_view secret, const ProofSubject& subject);

// Compares in constant time.
bool CheckProof(absl::string_view secret, const ProofSubject& subject, absl::string_view proof);

}  // namespace hvd::collectives

#endif  // COLLECTIVES_PEER_PROOF_H_
