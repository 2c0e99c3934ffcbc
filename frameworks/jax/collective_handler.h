// The XLA FFI handlers of the collectives in jitted programs.
#ifndef FRAMEWORKS_JAX_COLLECTIVE_HANDLER_H_
#define FRAMEWORKS_JAX_COLLECTIVE_HANDLER_H_

#include "frameworks/jax/xla_ffi_abi.h"

namespace hvd::frameworks::jax {

// The handlers; see CollectiveCall for the frame. Block until all ranks have called them and the
// results are complete. Thread-safe. Return nullptr, or an error whose message is an ErrorText.
// REQUIRES: Runtime() is not nullptr.

// For programs on CPUs.
XlaError* HandleCollective(XlaCallFrame* frame);
// For programs on CUDA; see CudaCall.
XlaError* HandleCollectiveOnCuda(XlaCallFrame* frame);

}  // namespace hvd::frameworks::jax

#endif  // FRAMEWORKS_JAX_COLLECTIVE_HANDLER_H_
