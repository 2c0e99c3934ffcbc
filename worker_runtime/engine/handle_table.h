// The numbers by which users know their operations.
#ifndef WORKER_RUNTIME_ENGINE_HANDLE_TABLE_H_
#define WORKER_RUNTIME_ENGINE_HANDLE_TABLE_H_

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "worker_runtime/engine/operation.h"

namespace hvd {

// Thread-safe. Numbers are never used twice.
class HandleTable {
 public:
  int64_t Add(OperationPtr operation);
  OperationPtr Find(int64_t handle) const;  // nullptr: no such handle
  void Remove(int64_t handle);

 private:
  mutable absl::Mutex mutex_;
  int64_t last_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<int64_t, OperationPtr> operations_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hvd

#endif  // WORKER_RUNTIME_ENGINE_HANDLE_TABLE_H_
