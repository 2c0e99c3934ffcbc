// The run of a collective in a jitted program on CUDA.
#ifndef FRAMEWORKS_JAX_CUDA_CALL_H_
#define FRAMEWORKS_JAX_CUDA_CALL_H_

#include <cstdint>

#include "frameworks/jax/xla_ffi_abi.h"

namespace hvd::frameworks::jax {

// Runs the collective of a frame whose buffers are on a CUDA device, in the order of XLA's stream:
// after the work that the stream has, and before what XLA gives it next. The runtime works in XLA's
// buffers, without a copy, on a stream of its own that waits for XLA's; where the ranks can't use
// NCCL, it copies them through host memory. Operations that NCCL lacks, and those on devices other
// than the process's first one, are copied to host memory here. Thread-safe. Returns nullptr, or an
// error whose message is an ErrorText. REQUIRES: as HandleCollectiveOnCuda.
XlaError* ExecuteOnCuda(const XlaCallFrame& frame);

}  // namespace hvd::frameworks::jax

#endif  // FRAMEWORKS_JAX_CUDA_CALL_H_
