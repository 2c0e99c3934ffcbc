// The known signatures, those with an id: one copy per rank, the same on all ranks after the same
// plan.
#ifndef WORKER_RUNTIME_NEGOTIATION_KNOWN_SIGNATURES_H_
#define WORKER_RUNTIME_NEGOTIATION_KNOWN_SIGNATURES_H_

#include <string>

#include "absl/container/flat_hash_map.h"
#include "worker_runtime/negotiation/messages.h"

namespace hvd::worker_runtime::negotiation {

// Not thread-safe.
class KnownSignatures {
 public:
  // The id of an equal signature, or kNoSignatureId.
  SignatureId Find(const TensorSignature& signature) const;
  // nullptr if there is none of that id.
  SignaturePtr Get(SignatureId id) const;

  // Adds the signatures that the plan makes known, then removes those that it evicts.
  void Apply(const Plan& plan);

 private:
  absl::flat_hash_map<SignatureId, SignaturePtr> by_id_;
  absl::flat_hash_map<std::string, SignatureId> by_name_;  // the newest of that name
};

}  // namespace hvd::worker_runtime::negotiation

#endif  // WORKER_RUNTIME_NEGOTIATION_KNOWN_SIGNATURES_H_
