// Blocked waits: the operations that user threads have been waiting for, for a while. By this hint
// rank 0 recognises a deadlock.
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

// Thread-safe. An operation that several threads wait for counts once, until the first of them is
// done.
class BlockedWaits {
 public:
  // Returns whether it is new.
  bool Add(OperationPtr operation);
  // No effect if it is not there.
  void Remove(const OperationPtr& operation);

  struct Snapshot {
    uint64_t version = 0;  // grows with every change
    // Of each operation's first tensor: all of a group wait as long as one does, and the names are
    // sent again with every plan.
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
