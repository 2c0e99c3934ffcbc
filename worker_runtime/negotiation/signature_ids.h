// The coordinator's signature ids: assigns them to signatures, and evicts old ones.
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
// Holds at most `capacity` signatures, one per name, and evicts the one that was used least
// recently. A member may announce an id while the plan that evicts it is on its way; so an evicted
// signature can be resolved until every rank has seen that plan.
class SignatureKeeper {
 public:
  SignatureKeeper(size_t capacity, int size);

  // The signature of `id` in an announcement; nullptr if no rank can know it.
  SignaturePtr Resolve(SignatureId id) const;

  // The id of an equal signature, which counts as used now; kNoSignatureId if there is none.
  SignatureId Use(const TensorSignature& signature);

  // Assigns a new id to `signature`, which replaces an older one of that name; adds evicted ids to
  // plan.evicted_ids. kNoSignatureId if nothing is kept at all.
  SignatureId Insert(SignaturePtr signature, Plan& plan);

  // `rank` has carried out all plans up to `sequence`.
  void Acknowledge(int rank, uint64_t sequence);

  size_t evicted_count() const {
    return evicted_by_id_.size();
  }  // of those that can still be resolved

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
  // Counts the ranks that may still announce the id that was evicted first.
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
