#include "worker_runtime/negotiation/signature_ids.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace hvd::worker_runtime::negotiation {

SignatureIds::SignatureIds(size_t capacity, int size)
    : capacity_(capacity), acknowledged_(size, 0) {}

SignaturePtr SignatureIds::Resolve(SignatureId id) const {
  auto found = by_id_.find(id);
  if (found != by_id_.end()) return found->second->signature;
  auto evicted = evicted_by_id_.find(id);
  return evicted == evicted_by_id_.end() ? nullptr : evicted->second;
}

SignatureId SignatureIds::Use(const TensorSignature& signature) {
  auto found = by_name_.find(signature.name);
  // The name alone is not enough: a tensor may have changed its shape since.
  if (found == by_name_.end() || *found->second->signature != signature) return kNoSignatureId;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->id;
}

SignatureId SignatureIds::Insert(SignaturePtr signature, Plan& plan) {
  if (capacity_ == 0) return kNoSignatureId;
  // A name has one signature at a time. The older one is never used again if the tensor has changed
  // its shape for good.
  auto older = by_name_.find(signature->name);
  if (older != by_name_.end()) {
    Evict(older->second, plan);
  } else if (entries_.size() >= capacity_) {
    Evict(std::prev(entries_.end()), plan);
  }
  entries_.push_front(Entry{++last_id_, std::move(signature)});
  by_name_[entries_.front().signature->name] = entries_.begin();
  by_id_[last_id_] = entries_.begin();
  return last_id_;
}

void SignatureIds::Evict(Entries::iterator entry, Plan& plan) {
  plan.evicted_ids.push_back(entry->id);
  // Kept until all ranks have seen this plan: a rank that has not may still announce the id.
  evicted_.push_back(Evicted{plan.sequence, entry->id});
  // The number of ranks that are behind is known for the oldest eviction only.
  if (evicted_.size() == 1) CountBehind();
  evicted_by_id_[entry->id] = entry->signature;
  by_name_.erase(entry->signature->name);
  by_id_.erase(entry->id);
  entries_.erase(entry);
}

void SignatureIds::Acknowledge(int rank, uint64_t sequence) {
  const uint64_t before =
      std::exchange(acknowledged_[rank], std::max(acknowledged_[rank], sequence));
  if (evicted_.empty()) return;
  const uint64_t first = evicted_.front().sequence;
  // The minimum over all ranks is computed only when the last of them has reached the oldest
  // eviction, so at most once per plan, rather than for every announcement.
  if (before >= first || acknowledged_[rank] < first || --behind_ > 0) return;
  const uint64_t seen_by_all = *std::min_element(acknowledged_.begin(), acknowledged_.end());
  while (!evicted_.empty() && evicted_.front().sequence <= seen_by_all) {
    evicted_by_id_.erase(evicted_.front().id);
    evicted_.pop_front();
  }
  if (!evicted_.empty()) CountBehind();
}

void SignatureIds::CountBehind() {
  const uint64_t first = evicted_.front().sequence;
  behind_ = std::count_if(acknowledged_.begin(), acknowledged_.end(),
                          [first](uint64_t acknowledged) { return acknowledged < first; });
}

}  // namespace hvd::worker_runtime::negotiation
