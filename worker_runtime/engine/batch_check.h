// The check that a batch of a plan fits the memory of this rank's requests.
#ifndef WORKER_RUNTIME_ENGINE_BATCH_CHECK_H_
#define WORKER_RUNTIME_ENGINE_BATCH_CHECK_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "worker_runtime/engine/operation.h"
#include "worker_runtime/negotiation/messages.h"

namespace hvd::worker_runtime::engine {

// Plans, and the announcements of which rank 0 makes them, come over connections that are not
// encrypted by default, so whoever can change packets can change every number in them. The
// executors take sizes and types from the plan and addresses from this rank's requests. Without the
// check a changed plan would make them read and write beyond the tensors.
//
// `parts` are this rank's tensors, one for each tensor of the batch; nullopt: none. `rank` is this
// rank, of `size`.
// Errors:
//   - Internal: the plan does not fit; names the tensor.
absl::Status CheckBatch(const negotiation::Batch& batch,
                        absl::Span<const std::optional<OperationTensor>> parts, int rank, int size);

}  // namespace hvd::worker_runtime::engine

#endif  // WORKER_RUNTIME_ENGINE_BATCH_CHECK_H_
