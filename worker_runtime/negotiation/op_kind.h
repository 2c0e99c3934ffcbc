// What can be asked of the engine. The numbers are part of the C ABI and of the wire format.
#ifndef WORKER_RUNTIME_NEGOTIATION_OP_KIND_H_
#define WORKER_RUNTIME_NEGOTIATION_OP_KIND_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace hvd::worker_runtime::negotiation {

enum class OpKind : int32_t {
  kAllReduce = 0,
  kAllGather = 1,
  kBroadcast = 2,
  kAllToAll = 3,
  kReduceScatter = 4,
  kBarrier = 5,
  kJoin = 6,
  kCommit = 7,  // a barrier whose plan tells everyone alike whether the world is about to change
};
inline constexpr int kOpKindCount = 8;

// What users may ask for; the numbers are Horovod's.
enum class Reduction : int32_t {
  kAverage = 0,
  kSum = 1,
  kAdasum = 2,
  kMin = 3,
  kMax = 4,
  kProduct = 5,
};
inline constexpr int kReductionCount = 6;

absl::string_view NameOf(OpKind op);            // "allreduce", ...
absl::string_view NameOf(Reduction reduction);  // "average", ...

}  // namespace hvd::worker_runtime::negotiation

#endif  // WORKER_RUNTIME_NEGOTIATION_OP_KIND_H_
