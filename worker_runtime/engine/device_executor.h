// The executor of plans for tensors in the memory of CUDA devices.
#ifndef WORKER_RUNTIME_ENGINE_DEVICE_EXECUTOR_H_
#define WORKER_RUNTIME_ENGINE_DEVICE_EXECUTOR_H_

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "base/cancellation.h"
#include "collectives/device_communicator.h"
#include "worker_runtime/engine/operation.h"
#include "worker_runtime/negotiation/messages.h"
#include "worker_runtime/timeline/recorder.h"

namespace hvd::worker_runtime::engine {

// Connects the ranks' devices. Every rank calls it at the same point of its plans.
// Errors:
//   - Unimplemented: some rank has no device; the same on all ranks.
//   - Others: those of DeviceBackend::Connect.
using DeviceConnector =
    std::function<absl::StatusOr<std::unique_ptr<collectives::DeviceCommunicator>>(
        int device, const WaitBounds& bounds)>;

// Returns whether the operation can run on a device without the host; the same on all ranks.
// Excluded are scaled reductions other than sums of floats, averages of integers, Adasum, and
// operations without data. Pure.
bool IsForDevices(const negotiation::TensorSignature& signature);

// Run() is called by one thread at a time, Abort() by any thread at any time.
class DeviceExecutor {
 public:
  // Loads and connects nothing before the first batch. `connect` may be empty: then no rank has
  // devices. `usual_device` is used by a rank that has joined and never had a tensor on a device.
  DeviceExecutor(DeviceConnector connect, int usual_device, absl::Duration timeout,
                 timeline::Recorder& recorder, int process_set);

  // See Executor::Run.
  absl::Status Run(const negotiation::Batch& batch,
                   absl::Span<const std::optional<OperationTensor>> parts);

  // Makes the running Run, and every later one, return Aborted(reason) soon. Does not block.
  void Abort(absl::string_view reason);

 private:
  absl::Status Connect(int device);
  absl::Status AllReduce(const negotiation::Batch& batch,
                         absl::Span<const std::optional<OperationTensor>> parts);
  absl::Status AllGather(const negotiation::PlannedTensor& planned, const OperationTensor& part);
  absl::Status Broadcast(const negotiation::PlannedTensor& planned, const OperationTensor& part);
  absl::Status AllToAll(const negotiation::PlannedTensor& planned, const OperationTensor& part);
  absl::Status ReduceScatter(const negotiation::PlannedTensor& planned,
                             const OperationTensor& part);
  // Like OperationTensor::PrepareOutput, but new memory is the device's.
  absl::StatusOr<void*> PrepareOutput(const OperationTensor& part, size_t bytes, size_t expected);
  timeline::ActivityScope Calling(const char* operation) const {
    return timeline::ActivityScope(recorder_, process_set_, "NCCL_", operation);
  }
  // Returns device memory filled with the reduction's neutral element, for the tensors of the batch
  // that this rank lacks because it has joined; nullptr: it lacks none.
  absl::StatusOr<char*> Neutral(const negotiation::Batch& batch,
                                absl::Span<const std::optional<OperationTensor>> parts);

  const DeviceConnector connect_;
  const collectives::CallOptions options_;
  timeline::Recorder& recorder_;
  const int process_set_;
  int device_;
  absl::Status refusal_;  // Unimplemented if this group has no devices; kept, as on all ranks
  Cancellation cancellation_;
  absl::Mutex mutex_;
  // Written by Run, under the lock; so Run reads it without the lock, and Abort reads it with it.
  std::unique_ptr<collectives::DeviceCommunicator> communicator_;
};

}  // namespace hvd::worker_runtime::engine

#endif  // WORKER_RUNTIME_ENGINE_DEVICE_EXECUTOR_H_
