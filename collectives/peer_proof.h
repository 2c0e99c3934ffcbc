// HMAC proofs of one rank to another that it knows the epoch's secret.
#ifndef COLLECTIVES_PEER_PROOF_H_
#define COLLECTIVES_PEER_PROOF_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "base/crypto.h"
#include "base/ids.h"

namespace hvd::collectives {

// The data that a proof authenticates. A proof is valid only for this data, so it can't be replayed
// in another protocol, epoch or connection, or be reflected to its sender.
struct ProofSubject {
  absl::string_view protocol;  // "gloo link"
  Epoch epoch;
  int size = 0;  // of the group
  int from = 0;
  int to = 0;  // kEveryRank: all others
  // The earlier messages between the two ranks. They include a fresh nonce of the rank that checks
  // the proof, so that an intercepted proof can't be replayed.
  absl::string_view transcript;
  // The channel binding (net::Wire::Binding): a value that only the two ends of the TLS connection
  // know, so that a relay can't forward a proof to another connection. Empty without TLS.
  absl::string_view binding = {};
};

inline constexpr int kEveryRank = -1;
inline constexpr size_t kProofBytes = kHmacSha256Bytes;
inline constexpr size_t kNonceBytes = 32;

// kNonceBytes random bytes. Thread-safe, as are the functions below.
std::string MakeNonce();

// HMAC-SHA256 under `secret`; kProofBytes long.
std::string MakeProof(absl::string_view secret, const ProofSubject& subject);

// Compares in constant time.
bool CheckProof(absl::string_view secret, const ProofSubject& subject, absl::string_view proof);

}  // namespace hvd::collectives

#endif  // COLLECTIVES_PEER_PROOF_H_
