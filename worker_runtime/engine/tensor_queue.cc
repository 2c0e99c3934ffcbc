#include "worker_runtime/engine/tensor_queue.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"

namespace hvd::worker_runtime::engine {

absl::StatusOr<bool> TensorQueue::Push(OperationPtr operation) {
  absl::MutexLock lock(&mutex_);
  if (!closed_.ok()) return closed_;
  for (size_t i = 0; i < operation->signatures.size(); ++i) {
    const std::string& name = operation->signatures[i]->name;
    if (in_flight_.try_emplace(name, OperationTensor{operation, i}).second) continue;
    // All or nothing: the names of this operation added so far are taken back.
    for (size_t added = 0; added < i; ++added) {
      in_flight_.erase(operation->signatures[added]->name);
    }
    return absl::AlreadyExistsError(
        absl::StrCat("a tensor named '", name, "' is being processed already"));
  }
  const bool was_much = new_bytes_ >= kMuchBytes;
  for (const negotiation::SignaturePtr& signature : operation->signatures)
    new_bytes_ += negotiation::ByteCount(*signature);
  if (new_.empty()) new_since_ = Clock::Real().Now();
  new_.push_back(std::move(operation));
  // Otherwise the engine's thread knows already: it wakes up when the first operation has waited
  // long enough.
  return new_.size() == 1 || (!was_much && new_bytes_ >= kMuchBytes);
}

std::vector<OperationPtr> TensorQueue::TakeNew() {
  absl::MutexLock lock(&mutex_);
  new_bytes_ = 0;
  return std::exchange(new_, {});
}

absl::Time TensorQueue::TakeNewBy(absl::Duration patience) const {
  absl::MutexLock lock(&mutex_);
  if (new_.empty()) return absl::InfiniteFuture();
  return new_bytes_ >= kMuchBytes ? absl::InfinitePast() : new_since_ + patience;
}

bool TensorQueue::IsEmpty() const {
  absl::MutexLock lock(&mutex_);
  return in_flight_.empty();
}

std::optional<OperationTensor> TensorQueue::Take(const std::string& name) {
  absl::MutexLock lock(&mutex_);
  auto found = in_flight_.find(name);
  if (found == in_flight_.end()) return std::nullopt;
  OperationTensor tensor = std::move(found->second);
  in_flight_.erase(found);
  return tensor;
}

void TensorQueue::Close(const absl::Status& status) {
  absl::flat_hash_map<std::string, OperationTensor> unfinished;
  {
    absl::MutexLock lock(&mutex_);
    closed_.Update(status);
    new_.clear();
    unfinished.swap(in_flight_);
  }
  // Outside the lock: Finish calls back, and a thread that it wakes may call Push.
  for (const auto& [name, tensor] : unfinished) tensor.Finish(status);
}

}  // namespace hvd::worker_runtime::engine
