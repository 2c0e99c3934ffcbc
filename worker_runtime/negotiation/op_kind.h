// The engine's operations and their traits. The enumerators' numbers are part of the C ABI and of
// the wire format.
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
  kCommit = 7,  // a barrier whose result, world_is_changing, is the same on all ranks
};

// The traits of an operation. An operation without traits is a barrier.
enum class OpTrait {
  kCarriesData,   // has tensors, which may be on a device
  kNeedsInput,    // every rank must pass an input; without this trait the output may serve as one
  kKeepsShape,    // the result has the request's shape
  kRowsDiffer,    // ranks may have different numbers of rows, which the plan must contain
  kDividesRows,   // the rows are divided among the ranks
  kHasSplits,     // each rank sets how many of its rows each rank receives
  kHasRoot,       // all ranks must name the same root rank
  kReduces,       // has a reduction and scale factors, which must be equal on all ranks
  kTakesAdasum,   // Adasum is a possible reduction
  kFuses,         // several tensors of a kind may be fused
  kOutlivesJoin,  // possible without the data of ranks that have joined
  kWorldOnly,     // possible for the whole world only, not for other process sets
};

// One row of the table of operations.
class OpTraits {
 public:
  template <typename... Traits>
  constexpr explicit OpTraits(OpKind kind, absl::string_view name, Traits... traits)
      : kind_(kind), name_(name), bits_((0u | ... | Bit(traits))) {}

  constexpr OpKind kind() const { return kind_; }
  constexpr absl::string_view name() const { return name_; }
  constexpr bool Has(OpTrait trait) const { return (bits_ & Bit(trait)) != 0; }

 private:
  static constexpr uint32_t Bit(OpTrait trait) { return 1u << static_cast<int>(trait); }

  OpKind kind_;
  absl::string_view name_;
  uint32_t bits_;
};

// In the order of OpKind.
inline constexpr OpTraits kOpTraits[] = {
    OpTraits(OpKind::kAllReduce, "allreduce", OpTrait::kCarriesData, OpTrait::kNeedsInput,
             OpTrait::kKeepsShape, OpTrait::kReduces, OpTrait::kTakesAdasum, OpTrait::kFuses,
             OpTrait::kOutlivesJoin),
    OpTraits(OpKind::kAllGather, "allgather", OpTrait::kCarriesData, OpTrait::kNeedsInput,
             OpTrait::kRowsDiffer),
    OpTraits(OpKind::kBroadcast, "broadcast", OpTrait::kCarriesData, OpTrait::kKeepsShape,
             OpTrait::kHasRoot),
    OpTraits(OpKind::kAllToAll, "alltoall", OpTrait::kCarriesData, OpTrait::kNeedsInput,
             OpTrait::kRowsDiffer, OpTrait::kHasSplits),
    OpTraits(OpKind::kReduceScatter, "reducescatter", OpTrait::kCarriesData, OpTrait::kNeedsInput,
             OpTrait::kReduces, OpTrait::kDividesRows),
    OpTraits(OpKind::kBarrier, "barrier"),
    OpTraits(OpKind::kJoin, "join", OpTrait::kWorldOnly),
    OpTraits(OpKind::kCommit, "commit", OpTrait::kWorldOnly),
};
inline constexpr int kOpKindCount = sizeof(kOpTraits) / sizeof(kOpTraits[0]);

// REQUIRES: `op` is one of the enumerators.
constexpr const OpTraits& TraitsOf(OpKind op) { return kOpTraits[static_cast<int>(op)]; }
constexpr bool Has(OpKind op, OpTrait trait) { return TraitsOf(op).Has(trait); }

// The reductions that users can request. The numbers are those of Horovod.
enum class Reduction : int32_t {
  kAverage = 0,
  kSum = 1,
  kAdasum = 2,
  kMin = 3,
  kMax = 4,
  kProduct = 5,
};
inline constexpr int kReductionCount = 6;

// Returns the name, e.g. "allreduce" or "average". Accepts values that are no enumerators.
absl::string_view NameOf(OpKind op);
absl::string_view NameOf(Reduction reduction);

}  // namespace hvd::worker_runtime::negotiation

#endif  // WORKER_RUNTIME_NEGOTIATION_OP_KIND_H_
