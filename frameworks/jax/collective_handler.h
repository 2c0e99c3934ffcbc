// The handler that XLA calls for each collective of a jitted program.
#ifndef FRAMEWORKS_JAX_COLLECTIVE_HANDLER_H_
#define FRAMEWORKS_JAX_COLLECTIVE_HANDLER_H_

#include <string>

#include "frameworks/jax/xla_ffi_abi.h"

namespace hvd::frameworks::jax {

// A handler of XLA's FFI; see CollectiveCall. Blocks until all ranks have called it and the results
// are there. Thread-safe. Returns the error, with an ErrorText, or nullptr. REQUIRES: there is a
// Runtime().
XlaError* HandleCollective(XlaCallFrame* frame);

// The ErrorText of the first collective that broke the world since the last call, or "". XLA tells
// it only to who reads the program's results. Thread-safe.
std::string TakeFailure();

}  // namespace hvd::frameworks::jax

#endif  // FRAMEWORKS_JAX_COLLECTIVE_HANDLER_H_
