// The set of operations that user threads of this rank have been blocked on for a while. Rank 0
// uses the sets of all ranks to detect deadlocks.
#ifndef WORKER_RUNTIME_ENGINE_BLOCKED_WAITS_H_
#define WORKER_RUNTIME_ENGINE_BLOCKED_WAITS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "worker_runtime/engine/operation.h"

namespace hvd::worker_runtime::engine {

// Thread-safe. An operation on which several threads wait is one element, which the first Remove
// removes.
class BlockedWaits {
 public:
  // Returns whether the operation was added; false: it was there.
  bool Add(OperationPtr operation);
  // Has no effect if the operation is not there.
  void Remove(const OperationPtr& operation);

  struct Snapshot {
    uint64_t version = 0;  // grows with every change
    // The name of each operation's first tensor. One name is enough, since the tensors of an
    // operation become ready together, and it keeps messages short: names are sent again after
    // every plan.
    std::vector<std::string> names;
  };
  Snapshot Get() const;

 private:
  mutable absl::Mutex mutex_;
  uint64_t version_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_set<OperationPtr> operations_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hvd::worker_runtime::engine

#endif  // WORKER_RUNTIME_ENGINE_BLOCKED_WAITS_H_
