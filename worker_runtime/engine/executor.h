// Carries out what the plans say: moves the data, nothing else.
#ifndef WORKER_RUNTIME_ENGINE_EXECUTOR_H_
#define WORKER_RUNTIME_ENGINE_EXECUTOR_H_

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "collectives/communicator.h"
#include "worker_runtime/engine/fusion_buffer.h"
#include "worker_runtime/engine/operation.h"
#include "worker_runtime/negotiation/messages.h"

namespace hvd {

// Used by the engine's thread. The communicator must outlive it.
class Executor {
 public:
  // This rank's part in each tensor of a batch; nullopt where it is absent because it has joined.
  using Parts = std::vector<std::optional<OperationTensor>>;

  Executor(Communicator& communicator, absl::Duration timeout)
      : communicator_(communicator), options_{timeout} {}

  // Runs one batch and fills in the results of the parts.
  //   Unimplemented, InvalidArgument: the backend can't do this, on no rank; nothing is broken.
  //   Anything else: the communicator is broken.
  absl::Status Run(const Batch& batch, const Parts& parts);

 private:
  absl::Status AllReduceOne(const PlannedTensor& planned, const OperationTensor* part);
  absl::Status AllReduceFused(const Batch& batch, const Parts& parts);
  // Reduces the `count` elements at `in` to `out`, which may be the same.
  absl::Status Reduce(const TensorSignature& signature, const void* in, void* out, size_t count);
  absl::Status AllGather(const PlannedTensor& planned, const OperationTensor& part);
  absl::Status Broadcast(const PlannedTensor& planned, const OperationTensor& part);
  absl::Status AllToAll(const PlannedTensor& planned, const OperationTensor& part);
  absl::Status ReduceScatter(const PlannedTensor& planned, const OperationTensor& part);

  Communicator& communicator_;
  const CallOptions options_;
  FusionBuffer buffer_;
};

}  // namespace hvd

#endif  // WORKER_RUNTIME_ENGINE_EXECUTOR_H_
