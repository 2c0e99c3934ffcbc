// Conversions of types and operations to NCCL's, and of errors of NCCL and CUDA to Status. Pure.
#ifndef COLLECTIVES_NCCL_CONVERT_H_
#define COLLECTIVES_NCCL_CONVERT_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "collectives/nccl/abi.h"
#include "collectives/types.h"

namespace hvd::collectives::nccl {

// A reduction in NCCL's terms. Booleans are bytes of 0 or 1, so they are reduced as bytes: "or" is
// a maximum, "and" a minimum.
struct NcclReduction {
  NcclType type;
  NcclOp op;
};
// nullopt: NCCL lacks the type (int16).
std::optional<NcclReduction> ToNccl(DataType type, ReduceOp op);

// A factor in NCCL's form: one element of the tensor's type.
struct NcclFactor {
  alignas(8) char bytes[8] = {};
};
// REQUIRES: IsFloating(type).
NcclFactor ToNcclFactor(DataType type, double factor);

// Whether NCCL has refused the call. kInProgress is no error: a call on a non-blocking communicator
// may return it, and NCCL goes on with the work.
inline bool IsError(NcclResult result) {
  return result != NcclResult::kSuccess && result != NcclResult::kInProgress;
}

// The status of the NCCL call `what`; OK unless IsError(result). `text` is NCCL's text for the
// result, `detail` its text for the last error, which may be empty. Errors:
//   - Unavailable: a system call or a peer failed.
//   - DeadlineExceeded: NCCL's own timeout passed.
//   - Internal: any other error.
absl::Status FromNccl(NcclResult result, absl::string_view what, absl::string_view text,
                      absl::string_view detail);

// The status of the CUDA call `what`, with the driver's error text; OK for kSuccess.
// Errors:
//   - ResourceExhausted: the device has no memory left.
//   - Internal: any other error.
absl::Status FromCuda(const CudaFunctions& cuda, CudaResult result, absl::string_view what);

}  // namespace hvd::collectives::nccl

#endif  // COLLECTIVES_NCCL_CONVERT_H_
