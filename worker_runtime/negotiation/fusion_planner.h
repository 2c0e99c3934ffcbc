// The fusion planner: decides which tensors are reduced together, in one batch.
#ifndef WORKER_RUNTIME_NEGOTIATION_FUSION_PLANNER_H_
#define WORKER_RUNTIME_NEGOTIATION_FUSION_PLANNER_H_

#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "worker_runtime/negotiation/messages.h"

namespace hvd::worker_runtime::negotiation {

// From this size on the two copies of fusion cost more than the fixed cost of a collective that
// they save, so such tensors are not fused where fusion costs copies.
inline constexpr size_t kLargeTensorBytes = size_t{1} << 20;
// The largest batch. A larger one would be no faster, and would need more memory.
inline constexpr size_t kLargestBatchBytes = size_t{32} << 20;

// Puts all-reduces of equal type, reduction, scale factors and kind of memory into batches of at
// most `threshold_bytes` (0: no fusion), even if tensors of other kinds lie between them. Adasum,
// other operations, and tensors of `large_bytes` or more are not fused. Batches are in the order of
// their first tensors. `groups` has a number for each tensor; tensors of different numbers are not
// fused. Empty: no such restriction.
std::vector<Batch> PlanFusion(std::vector<PlannedTensor> tensors, size_t threshold_bytes,
                              absl::Span<const size_t> groups = {},
                              size_t large_bytes = kLargeTensorBytes);

}  // namespace hvd::worker_runtime::negotiation

#endif  // WORKER_RUNTIME_NEGOTIATION_FUSION_PLANNER_H_
