// The queue of operations in flight, from user threads to the engine's thread.
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

// Thread-safe. A tensor is in flight from Push until Take; its name is free again before its
// operation is seen to be done.
class TensorQueue {
 public:
  // Returns whether the engine may be asleep and must be woken: nothing was waiting for TakeNew, or
  // the waiting operations have reached kMuchBytes.
  // Errors:
  //   - AlreadyExists: a name is in flight, or occurs twice; nothing was queued.
  //   - Close's status: it was closed.
  absl::StatusOr<bool> Push(OperationPtr operation);

  // What was pushed since the last call, in order.
  std::vector<OperationPtr> TakeNew();

  // When TakeNew must be called if operations may wait for `patience` for others: now if they have
  // kMuchBytes; InfiniteFuture: there are none.
  absl::Time TakeNewBy(absl::Duration patience) const;

  // Waiting for more bytes than this gains nothing.
  static constexpr size_t kMuchBytes = size_t{8} << 20;

  // Whether nothing is in flight.
  bool IsEmpty() const;

  // Removes the tensor; nullopt if there is none of that name.
  std::optional<OperationTensor> Take(const std::string& name);

  // Finishes all operations in flight, and all later Pushes, with `status`. The first status stays.
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
