#include "worker_runtime/negotiation/op_kind.h"

namespace hvd::worker_runtime::negotiation {

absl::string_view NameOf(OpKind op) {
  switch (op) {
    case OpKind::kAllReduce:
      return "allreduce";
    case OpKind::kAllGather:
      return "allgather";
    case OpKind::kBroadcast:
      return "broadcast";
    case OpKind::kAllToAll:
      return "alltoall";
    case OpKind::kReduceScatter:
      return "reducescatter";
    case OpKind::kBarrier:
      return "barrier";
    case OpKind::kJoin:
      return "join";
    case OpKind::kCommit:
      return "commit";
  }
  return "unknown operation";
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
