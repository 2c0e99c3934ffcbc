// A queue of the operations in flight, from user threads to the engine's thread.
#ifndef WORKER_RUNTIME_ENGINE_TENSOR_QUEUE_H_
#define WORKER_RUNTIME_ENGINE_TENSOR_QUEUE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "worker_runtime/engine/operation.h"

namespace hvd::worker_runtime::engine {

// Thread-safe. A tensor is in flight from Push until Take. Its name can be used again as soon as
// its operation is done.
class TensorQueue {
 public:
  // Adds an operation. Returns whether the engine's thread may be asleep and must be woken: this is
  // the first operation since TakeNew, or their bytes have just reached kMuchBytes.
  // Errors:
  //   - AlreadyExists: a name is in flight, or occurs twice; nothing was queued.
  //   - The status given to Close: the queue is closed.
  absl::StatusOr<bool> Push(OperationPtr operation);

  // Returns the operations pushed since the last call, in order. They stay in flight.
  std::vector<OperationPtr> TakeNew();

  // Returns when TakeNew must be called if operations may wait for others for `patience`. With
  // kMuchBytes or more: at once (InfinitePast). Without new operations: InfiniteFuture.
  absl::Time TakeNewBy(absl::Duration patience) const;

  // Operations of this many bytes together gain nothing by waiting for more.
  static constexpr size_t kMuchBytes = size_t{8} << 20;

  // Whether nothing is in flight.
  bool IsEmpty() const;

  // Removes and returns a tensor in flight; nullopt: there is none of that name.
  std::optional<OperationTensor> Take(const std::string& name);

  // Finishes all operations in flight with `status`, and refuses later ones with it. The status of
  // the first call is kept for these.
  void Close(const absl::Status& status);

 private:
  mutable absl::Mutex mutex_;
  absl::Status closed_ ABSL_GUARDED_BY(mutex_);
  std::vector<OperationPtr> new_ ABSL_GUARDED_BY(mutex_);
  size_t new_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time new_since_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, OperationTensor> in_flight_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hvd::worker_runtime::engine

#endif  // WORKER_RUNTIME_ENGINE_TENSOR_QUEUE_H_
