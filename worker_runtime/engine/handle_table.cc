#include "worker_runtime/engine/handle_table.h"

#include <utility>

namespace hvd {

int64_t HandleTable::Add(OperationPtr operation) {
  absl::MutexLock lock(&mutex_);
  operations_.emplace(++last_, std::move(operation));
  return last_;
}

OperationPtr HandleTable::Find(int64_t handle) const {
  absl::MutexLock lock(&mutex_);
  auto found = operations_.find(handle);
  return found == operations_.end() ? nullptr : found->second;
}

void HandleTable::Remove(int64_t handle) {
  OperationPtr last;  // freed after the lock
  absl::MutexLock lock(&mutex_);
  auto found = operations_.find(handle);
  if (found == operations_.end()) return;
  last = std::move(found->second);
  operations_.erase(found);
}

}  // namespace hvd
