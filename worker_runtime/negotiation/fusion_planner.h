// The fusion of tensors: which of them are reduced in one batch.
#ifndef WORKER_RUNTIME_NEGOTIATION_FUSION_PLANNER_H_
#define WORKER_RUNTIME_NEGOTIATION_FUSION_PLANNER_H_

#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "worker_runtime/negotiation/messages.h"

namespace hvd::worker_runtime::negotiation {

// From this size on a collective's fixed costs are small beside the two copies of fusion, so such
// tensors stay alone where fusion costs copies.
inline constexpr size_t kLargeTensorBytes = size_t{1} << 20;
// A larger batch gains nothing and would only hold the memory.
inline constexpr size_t kLargestBatchBytes = size_t{32} << 20;

// Puts all-reduces of one type, reduction and pair of factors into batches of at most
// `threshold_bytes` (0: no fusion), looking ahead over tensors of other kinds. Adasum, other
// operations and tensors of `large_bytes` and more stay alone. Batches are in the order of their
// first tensors. `groups` has a number for each tensor; only tensors of one number are fused.
// Empty: all may be.
std::vector<Batch> PlanFusion(std::vector<PlannedTensor> tensors, size_t threshold_bytes,
                              absl::Span<const size_t> groups = {},
                              size_t large_bytes = kLargeTensorBytes);

}  // namespace hvd::worker_runtime::negotiation

#endif  // WORKER_RUNTIME_NEGOTIATION_FUSION_PLANNER_H_
