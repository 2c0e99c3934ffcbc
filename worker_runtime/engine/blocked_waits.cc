#include "worker_runtime/engine/blocked_waits.h"

#include <utility>

namespace hvd::worker_runtime::engine {

bool BlockedWaits::Add(OperationPtr operation) {
  absl::MutexLock lock(&mutex_);
  if (!operations_.insert(std::move(operation)).second) return false;
  ++version_;
  return true;
}

void BlockedWaits::Remove(const OperationPtr& operation) {
  absl::MutexLock lock(&mutex_);
  if (operations_.erase(operation) > 0) ++version_;
}

BlockedWaits::Snapshot BlockedWaits::Get() const {
  absl::MutexLock lock(&mutex_);
  Snapshot snapshot{version_, {}};
  for (const OperationPtr& operation : operations_) {
    // A waiting thread removes its operation a little after it is done.
    if (!operation->done.done()) snapshot.names.push_back(operation->signatures.front()->name);
  }
  return snapshot;
}

}  // namespace hvd::worker_runtime::engine
