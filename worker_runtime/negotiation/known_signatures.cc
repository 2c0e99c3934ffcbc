#include "worker_runtime/negotiation/known_signatures.h"

namespace hvd::worker_runtime::negotiation {

SignatureId KnownSignatures::Find(const TensorSignature& signature) const {
  auto found = by_name_.find(signature.name);
  if (found == by_name_.end()) return kNoSignatureId;
  return *by_id_.at(found->second) == signature ? found->second : kNoSignatureId;
}

SignaturePtr KnownSignatures::Get(SignatureId id) const {
  auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : found->second;
}

void KnownSignatures::Apply(const Plan& plan) {
  // Every rank applies every plan in this order (first additions, then evictions), so that the
  // copies stay equal without further messages.
  for (const Batch& batch : plan.batches) {
    for (const PlannedTensor& tensor : batch) {
      if (tensor.new_id == kNoSignatureId) continue;
      by_id_[tensor.new_id] = tensor.signature;
      by_name_[tensor.signature->name] = tensor.new_id;
    }
  }
  for (SignatureId id : plan.evicted_ids) {
    auto found = by_id_.find(id);
    if (found == by_id_.end()) continue;
    auto name = by_name_.find(found->second->name);
    // The name may belong to a newer signature by now.
    if (name != by_name_.end() && name->second == id) by_name_.erase(name);
    by_id_.erase(found);
  }
}

}  // namespace hvd::worker_runtime::negotiation
