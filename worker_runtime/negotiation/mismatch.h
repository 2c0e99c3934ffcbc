// The check that the ranks' requests of one name match, with the user's message if they don't.
#ifndef WORKER_RUNTIME_NEGOTIATION_MISMATCH_H_
#define WORKER_RUNTIME_NEGOTIATION_MISMATCH_H_

#include <optional>
#include <string>

#include "absl/types/span.h"
#include "worker_runtime/negotiation/tensor_signature.h"

namespace hvd::worker_runtime::negotiation {

// Returns why the requests can't run as one operation, with which rank sent what; nullopt: they
// can. by_rank[r] is nullptr if rank r has joined and so sent no request. REQUIRES: at least one
// request.
std::optional<std::string> FindMismatch(absl::Span<const SignaturePtr> by_rank);

}  // namespace hvd::worker_runtime::negotiation

#endif  // WORKER_RUNTIME_NEGOTIATION_MISMATCH_H_
