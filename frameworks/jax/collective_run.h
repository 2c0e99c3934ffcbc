// The run of a collective that XLA has called, and its errors: what the handlers for all platforms
// share.
#ifndef FRAMEWORKS_JAX_COLLECTIVE_RUN_H_
#define FRAMEWORKS_JAX_COLLECTIVE_RUN_H_

#include <cstdint>
#include <functional>
#include <string>

#include "frameworks/jax/collective_call.h"
#include "frameworks/jax/xla_ffi_abi.h"
#include "frameworks/runtime_library.h"

namespace hvd::frameworks::jax {

// All functions are thread-safe. The errors of XLA that they return have an ErrorText.

// The error for a status code of the runtime, of this thread's last call of it.
XlaError* Failure(const XlaApi& api, int32_t status);
// The error for a call that is wrong; `text` has one line.
XlaError* Refusal(const XlaApi& api, const std::string& text);

// Submits the requests of `call` and waits on this thread, which does the engine's work meanwhile.
// XLA orders the calls of a program by the byte that each passes to the next, so that all ranks
// block in the same call. Then calls `take(index, result)` for each result, which returns an error
// in one line, or "", and finally `finish()`, which returns an error or nullptr. The results are
// valid until that has returned.
XlaError* RunCollective(const XlaApi& api, const CollectiveCall& call,
                        const std::function<std::string(int, const hvd_tensor&)>& take,
                        const std::function<XlaError*()>& finish);

// Returns and clears the ErrorText of the first collective that has broken the world since the last
// call; "": none has. XLA itself reports such an error only when the program's results are read.
std::string TakeFailure();

}  // namespace hvd::frameworks::jax

#endif  // FRAMEWORKS_JAX_COLLECTIVE_RUN_H_
