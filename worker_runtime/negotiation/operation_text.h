// The text for an operation in messages to users.
#ifndef WORKER_RUNTIME_NEGOTIATION_OPERATION_TEXT_H_
#define WORKER_RUNTIME_NEGOTIATION_OPERATION_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"
#include "worker_runtime/negotiation/op_kind.h"

namespace hvd::worker_runtime::negotiation {

// Returns e.g. "allreduce 'x'" for the tensor "allreduce.x". Most tensor names begin with the name
// of the operation ("allreduce.x", "grouped_allreduce.x_1of2"), which is not repeated.
std::string OperationText(OpKind op, absl::string_view name);

}  // namespace hvd::worker_runtime::negotiation

#endif  // WORKER_RUNTIME_NEGOTIATION_OPERATION_TEXT_H_
