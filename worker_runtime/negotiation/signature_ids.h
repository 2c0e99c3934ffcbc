// The coordinator's response cache: assigns ids to signatures and evicts old ones.
#ifndef WORKER_RUNTIME_NEGOTIATION_SIGNATURE_IDS_H_
#define WORKER_RUNTIME_NEGOTIATION_SIGNATURE_IDS_H_

#include <cstddef>
#include <deque>
#include <list>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "worker_runtime/negotiation/messages.h"

namespace hvd::worker_runtime::negotiation {

// Not thread-safe.
//
// Holds at most `capacity` signatures, one per name, and evicts the least recently used one. A
// member may announce an id while the plan that evicts it is on its way, so an evicted signature
// can be resolved until every rank has acknowledged that plan.
class SignatureIds {
 public:
  SignatureIds(size_t capacity, int size);

  // Returns the signature of an announced id; nullptr: no rank can know this id.
  SignaturePtr Resolve(SignatureId id) const;

  // Returns the id of an equal signature and marks it as used; kNoSignatureId: there is none.
  SignatureId Use(const TensorSignature& signature);

  // Assigns a new id to `signature`, which replaces an older one of the same name, and adds evicted
  // ids to plan.evicted_ids. Returns kNoSignatureId if the capacity is 0.
  SignatureId Insert(SignaturePtr signature, Plan& plan);

  // Records that `rank` has carried out all plans up to `sequence`.
  void Acknowledge(int rank, uint64_t sequence);

  // The number of evicted signatures that can still be resolved.
  size_t evicted_count() const { return evicted_by_id_.size(); }

 private:
  struct Entry {
    SignatureId id;
    SignaturePtr signature;
  };
  struct Evicted {
    uint64_t sequence;
    SignatureId id;
  };
  using Entries = std::list<Entry>;

  void Evict(Entries::iterator entry, Plan& plan);
  // Counts the ranks that may still announce the oldest evicted id.
  void CountBehind();

  const size_t capacity_;
  SignatureId last_id_ = kNoSignatureId;
  Entries entries_;  // most recently used first
  absl::flat_hash_map<std::string, Entries::iterator> by_name_;
  absl::flat_hash_map<SignatureId, Entries::iterator> by_id_;
  std::deque<Evicted> evicted_;  // in order of sequence
  absl::flat_hash_map<SignatureId, SignaturePtr> evicted_by_id_;
  std::vector<uint64_t> acknowledged_;  // by rank
  size_t behind_ = 0;                   // ranks that have not carried out evicted_'s first plan
};

}  // namespace hvd::worker_runtime::negotiation

#endif  // WORKER_RUNTIME_NEGOTIATION_SIGNATURE_IDS_H_
