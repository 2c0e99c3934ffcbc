// Every rank's copy of the signatures that have an id; the same on all ranks after the same plan.
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

  // Notes what the plan makes known, then forgets what it evicts.
  void Apply(const Plan& plan);

 private:
  absl::flat_hash_map<SignatureId, SignaturePtr> by_id_;
  absl::flat_hash_map<std::string, SignatureId> by_name_;  // the newest of that name
};

}  // namespace hvd::worker_runtime::negotiation

#endif  // WORKER_RUNTIME_NEGOTIATION_KNOWN_SIGNATURES_H_
