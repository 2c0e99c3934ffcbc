#include "worker_runtime/engine/blocked_waits.h"

#include <utility>

namespace hvd {

void BlockedWaits::Add(OperationPtr operation) {
  absl::MutexLock lock(&mutex_);
  ++version_;
  operations_.insert(std::move(operation));
}

void BlockedWaits::Remove(const OperationPtr& operation) {
  absl::MutexLock lock(&mutex_);
  ++version_;
  operations_.erase(operation);
}

BlockedWaits::Snapshot BlockedWaits::Get() const {
  absl::MutexLock lock(&mutex_);
  Snapshot snapshot{version_, {}};
  for (const OperationPtr& operation : operations_) {
    if (operation->done.done()) continue;
    for (const SignaturePtr& tensor : operation->signatures) snapshot.names.push_back(tensor->name);
  }
  return snapshot;
}

}  // namespace hvd
