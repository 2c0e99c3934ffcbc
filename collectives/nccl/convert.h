// Our values as NCCL's, and its and the driver's errors as ours. Pure.
#ifndef COLLECTIVES_NCCL_CONVERT_H_
#define COLLECTIVES_NCCL_CONVERT_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "collectives/nccl/abi.h"
#include "collectives/types.h"

namespace hvd::collectives::nccl {

// How NCCL is asked for a reduction. Booleans, which are bytes of 0 or 1, are reduced as such: "or"
// is a maximum, "and" a minimum. nullopt: NCCL has no such type (int16).
struct NcclReduction {
  NcclType type;
  NcclOp op;
};
std::optional<NcclReduction> ToNccl(DataType type, ReduceOp op);

// A factor as NCCL reads it: one element of the tensor's type.
struct NcclFactor {
  alignas(8) char bytes[8] = {};
};
// REQUIRES: IsFloating(type).
NcclFactor ToNcclFactor(DataType type, double factor);

// OK for kSuccess and kInProgress.
//   Unavailable: the system or a peer failed NCCL.   DeadlineExceeded: NCCL gave up waiting.
//   Internal: everything else, with `what` was
//   asked and NCCL's own `detail` (may be empty).
absl::Status FromNccl(NcclResult result, absl::string_view what, absl::string_view text,
                      absl::string_view detail);

// The driver's word on an error.   OK for kSuccess.   ResourceExhausted: no memory.   Internal.
absl::Status FromCuda(const CudaFunctions& cuda, CudaResult result, absl::string_view what);

}  // namespace hvd::collectives::nccl

#endif  // COLLECTIVES_NCCL_CONVERT_H_
