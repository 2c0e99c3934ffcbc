// The executor of plans for tensors in CUDA devices' memory.
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

// Connects the ranks' devices; every rank calls it, at the same point of its plans.
// Errors:
//   - Unimplemented: some rank has none; the same on all ranks.
//   - Others: those of DeviceBackend::Connect.
using DeviceConnector =
    std::function<absl::StatusOr<std::unique_ptr<collectives::DeviceCommunicator>>(
        int device, const WaitBounds& bounds)>;

// Whether a device can do it without the host; the same on all ranks. Excluded: scaled reductions
// other than sums of floats, averages of integers, Adasum, and operations without data. Pure.
bool IsForDevices(const negotiation::TensorSignature& signature);

// The engine calls Run(), one call at a time; Abort() may be called from any thread at any time.
class DeviceExecutor {
 public:
  // Opens nothing before the first batch. `connect` may be empty: no rank has devices. A rank that
  // has joined without ever having had a tensor on a device takes part with `usual_device`.
  DeviceExecutor(DeviceConnector connect, int usual_device, absl::Duration timeout,
                 timeline::Recorder& recorder, int process_set);

  // See Executor::Run.
  absl::Status Run(const negotiation::Batch& batch,
                   absl::Span<const std::optional<OperationTensor>> parts);

  // Ends a running and every later Run with Aborted(reason), soon. Does not block.
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
  // See OperationTensor's; here the memory is the device's.
  absl::StatusOr<void*> PrepareOutput(const OperationTensor& part, size_t bytes, size_t expected);
  timeline::ActivityScope Calling(const char* operation) const {
    return timeline::ActivityScope(recorder_, process_set_, "NCCL_", operation);
  }
  // Device memory with the neutral element of the reduction, for a rank without a contribution to
  // the batch.
  absl::StatusOr<char*> Neutral(const negotiation::Batch& batch,
                                absl::Span<const std::optional<OperationTensor>> parts);

  const DeviceConnector connect_;
  const collectives::CallOptions options_;
  timeline::Recorder& recorder_;
  const int process_set_;
  int device_;
  absl::Status refusal_;  // Unimplemented: this group has no devices
  Cancellation cancellation_;
  absl::Mutex mutex_;
  std::unique_ptr<collectives::DeviceCommunicator> communicator_;  // written under the lock, by Run
};

}  // namespace hvd::worker_runtime::engine

#endif  // WORKER_RUNTIME_ENGINE_DEVICE_EXECUTOR_H_
