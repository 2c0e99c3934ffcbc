// The XLA FFI handler of the collectives in jitted programs.
#ifndef FRAMEWORKS_JAX_COLLECTIVE_HANDLER_H_
#define FRAMEWORKS_JAX_COLLECTIVE_HANDLER_H_

#include <string>

#include "frameworks/jax/xla_ffi_abi.h"

namespace hvd::frameworks::jax {

// The handler; see CollectiveCall for the frame. Blocks until all ranks have called it and the
// results are complete. Thread-safe. Returns nullptr, or an error whose message is an ErrorText.
// REQUIRES: Runtime() is not nullptr.
XlaError* HandleCollective(XlaCallFrame* frame);

// Returns and clears the ErrorText of the first collective that has broken the world since the last
// call; "": none has. XLA itself reports such an error only when the program's results are read.
// Thread-safe.
std::string TakeFailure();

}  // namespace hvd::frameworks::jax

#endif  // FRAMEWORKS_JAX_COLLECTIVE_HANDLER_H_
