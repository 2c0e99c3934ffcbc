// The check whether the ranks' requests of one name match, and the message for users if they don't.
#ifndef WORKER_RUNTIME_NEGOTIATION_MISMATCH_H_
#define WORKER_RUNTIME_NEGOTIATION_MISMATCH_H_

#include <optional>
#include <string>

#include "absl/types/span.h"
#include "worker_runtime/negotiation/tensor_signature.h"

namespace hvd::worker_runtime::negotiation {

// Why the requests can't be run as one operation, and which rank sent what; nullopt if they can.
// by_rank[r] is nullptr if rank r has joined instead of taking part. REQUIRES: at least one
// request.
std::optional<std::string> FindMismatch(absl::Span<const SignaturePtr> by_rank);

}  // namespace hvd::worker_runtime::negotiation

#endif  // WORKER_RUNTIME_NEGOTIATION_MISMATCH_H_
