// Conversions: values to NCCL's, errors of NCCL and of the driver to Status. Pure.
#ifndef COLLECTIVES_NCCL_CONVERT_H_
#define COLLECTIVES_NCCL_CONVERT_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "collectives/nccl/abi.h"
#include "collectives/types.h"

namespace hvd::collectives::nccl {

// A reduction in NCCL's terms. Booleans, which are bytes of 0 or 1, are reduced as bytes: "or" is a
// maximum, "and" a minimum. nullopt: NCCL has no such type (int16).
struct NcclReduction {
  NcclType type;
  NcclOp op;
};
std::optional<NcclReduction> ToNccl(DataType type, ReduceOp op);

// A factor in NCCL's form: one element of the tensor's type.
struct NcclFactor {
  alignas(8) char bytes[8] = {};
};
// REQUIRES: IsFloating(type).
NcclFactor ToNcclFactor(DataType type, double factor);

// OK for kSuccess and kInProgress.
// Errors:
//   - Unavailable: the system or a peer failed NCCL.
//   - DeadlineExceeded: NCCL gave up waiting.
//   - Internal: everything else, with the request `what` and NCCL's own `detail` (may be empty).
absl::Status FromNccl(NcclResult result, absl::string_view what, absl::string_view text,
                      absl::string_view detail);

// OK for kSuccess; else the driver's error text.
// Errors:
//   - ResourceExhausted: no memory.
//   - Internal: any other error.
absl::Status FromCuda(const CudaFunctions& cuda, CudaResult result, absl::string_view what);

}  // namespace hvd::collectives::nccl

#endif  // COLLECTIVES_NCCL_CONVERT_H_
