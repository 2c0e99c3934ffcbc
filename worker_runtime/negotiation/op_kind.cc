#include "worker_runtime/negotiation/op_kind.h"

namespace hvd::worker_runtime::negotiation {

absl::string_view NameOf(OpKind op) {
  // Checked, because error texts name the operation of a request before it has been found valid.
  const auto number = static_cast<int64_t>(op);
  return number >= 0 && number < kOpKindCount ? kOpTraits[number].name() : "unknown operation";
}

absl::string_view NameOf(Reduction reduction) {
  switch (reduction) {
    case Reduction::kAverage:
      return "average";
    case Reduction::kSum:
      return "sum";
    case Reduction::kAdasum:
      return "adasum";
    case Reduction::kMin:
      return "min";
    case Reduction::kMax:
      return "max";
    case Reduction::kProduct:
      return "product";
  }
  return "unknown reduction";
}

}  // namespace hvd::worker_runtime::negotiation
