// A rank's copy of the response cache: the signatures that have an id. Since all ranks apply the
// same plans in the same order, their copies are equal.
#ifndef WORKER_RUNTIME_NEGOTIATION_KNOWN_SIGNATURES_H_
#define WORKER_RUNTIME_NEGOTIATION_KNOWN_SIGNATURES_H_

#include <string>

#include "absl/container/flat_hash_map.h"
#include "worker_runtime/negotiation/messages.h"

namespace hvd::worker_runtime::negotiation {

// Not thread-safe.
class KnownSignatures {
 public:
  // Returns the id of an equal signature, or kNoSignatureId.
  SignatureId Find(const TensorSignature& signature) const;
  // Returns the signature of an id, or nullptr.
  SignaturePtr Get(SignatureId id) const;

  // Adds the signatures to which the plan assigns ids, then removes those that it evicts.
  void Apply(const Plan& plan);

 private:
  absl::flat_hash_map<SignatureId, SignaturePtr> by_id_;
  absl::flat_hash_map<std::string, SignatureId> by_name_;  // the newest one of each name
};

}  // namespace hvd::worker_runtime::negotiation

#endif  // WORKER_RUNTIME_NEGOTIATION_KNOWN_SIGNATURES_H_
