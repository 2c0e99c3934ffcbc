// The executor of plans: runs the collective of each batch on the tensors' memory.
#ifndef WORKER_RUNTIME_ENGINE_EXECUTOR_H_
#define WORKER_RUNTIME_ENGINE_EXECUTOR_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "collectives/communicator.h"
#include "worker_runtime/engine/fusion_buffer.h"
#include "worker_runtime/engine/operation.h"
#include "worker_runtime/negotiation/messages.h"
#include "worker_runtime/timeline/recorder.h"

namespace hvd::worker_runtime::engine {

// Used by one thread at a time, the one that runs the engine's rounds. The communicator and the
// recorder must outlive it.
class Executor {
 public:
  // This rank's tensor for each tensor of a batch; nullopt: it has none, because it has joined.
  using Parts = std::vector<std::optional<OperationTensor>>;

  // Records its activities as those of `process_set`.
  Executor(collectives::Communicator& communicator, absl::Duration timeout,
           timeline::Recorder& recorder, int process_set);

  // Runs one batch and fills in the results of the parts.
  // Errors:
  //   - Unimplemented, InvalidArgument: the backend can't do this, on any rank. The communicator
  //     stays usable.
  //   - Any other code: the communicator is broken.
  absl::Status Run(const negotiation::Batch& batch, const Parts& parts);

 private:
  // Reduction directly from and to the tensors' memory.
  bool CanReducePieces(const negotiation::Batch& batch) const;
  absl::Status AllReducePieces(const negotiation::Batch& batch, const Parts& parts);
  // Reduction of one tensor in place, or of several through the fusion buffer; for communicators
  // without AllReducePieces, and for Adasum.
  absl::Status AllReduceOne(const negotiation::PlannedTensor& planned, const OperationTensor* part);
  absl::Status AllReduceFused(const negotiation::Batch& batch, const Parts& parts);
  // Reduces the `count` elements at `in` to `out`, which may be the same.
  absl::Status Reduce(const negotiation::TensorSignature& signature, const void* in, void* out,
                      size_t count);
  // Average of integers by sums of 64 bits; see NeedsWideSum.
  absl::Status AllReduceWide(const negotiation::Batch& batch, const Parts& parts);
  absl::Status ReduceScatterWide(const negotiation::TensorSignature& signature,
                                 const OperationTensor& part, const std::vector<size_t>& counts,
                                 void* out);
  absl::Status AllGather(const negotiation::PlannedTensor& planned, const OperationTensor& part);
  absl::Status Broadcast(const negotiation::PlannedTensor& planned, const OperationTensor& part);
  absl::Status AllToAll(const negotiation::PlannedTensor& planned, const OperationTensor& part);
  absl::Status ReduceScatter(const negotiation::PlannedTensor& planned,
                             const OperationTensor& part);

  // Records a call of the communicator, or a copy, for the lifetime of the result.
  timeline::ActivityScope Calling(const char* operation) const {
    return timeline::ActivityScope(recorder_, process_set_, backend_, operation);
  }
  timeline::ActivityScope Copying(const char* name) const {
    return timeline::ActivityScope(recorder_, process_set_, "", name);
  }

  collectives::Communicator& communicator_;
  const collectives::CallOptions options_;
  timeline::Recorder& recorder_;
  const int process_set_;
  const std::string backend_;  // the prefix of the activities' names, e.g. "TCP_"
  FusionBuffer buffer_;
};

}  // namespace hvd::worker_runtime::engine

#endif  // WORKER_RUNTIME_ENGINE_EXECUTOR_H_
