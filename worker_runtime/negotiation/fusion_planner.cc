#include "worker_runtime/negotiation/fusion_planner.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace hvd::worker_runtime::negotiation {
namespace {

// What the tensors of a batch must have in common: the reduction treats them as one array, and
// factors apply to all of it.
using FusionKey = std::tuple<collectives::DataType, Reduction, double, double, bool, size_t>;

// The newest batch of a kind, which may have room for more tensors.
struct OpenBatch {
  size_t index = 0;
  size_t bytes = 0;
};

// Adasum is not linear: the result for two tensors together is another one than for each alone.
bool CanFuse(const TensorSignature& signature, size_t bytes, size_t limit, size_t large_bytes) {
  return Has(signature.op, OpTrait::kFuses) && signature.reduction != Reduction::kAdasum &&
         bytes < large_bytes && bytes <= limit;
}

}  // namespace

std::vector<Batch> PlanFusion(std::vector<PlannedTensor> tensors, size_t threshold_bytes,
                              absl::Span<const size_t> groups, size_t large_bytes) {
  const size_t limit = std::min(threshold_bytes, kLargestBatchBytes);
  std::vector<Batch> batches;
  std::map<FusionKey, OpenBatch> open;
  for (size_t i = 0; i < tensors.size(); ++i) {
    PlannedTensor& tensor = tensors[i];
    const TensorSignature& signature = *tensor.signature;
    const size_t bytes = ByteCount(signature);
    // Tensors of other kinds in between do not close a batch: all ranks get the same plan, so its
    // order is free.
    if (tensors.size() > 1 && limit > 0 && CanFuse(signature, bytes, limit, large_bytes)) {
      const FusionKey key{signature.type,      signature.reduction, signature.prescale,
                          signature.postscale, signature.on_device, groups.empty() ? 0 : groups[i]};
      auto [found, added] = open.try_emplace(key);
      if (!added && found->second.bytes + bytes <= limit) {
        found->second.bytes += bytes;
        batches[found->second.index].push_back(std::move(tensor));
        continue;
      }
      // No room: a new batch of this kind replaces the open one.
      found->second = OpenBatch{batches.size(), bytes};
    }
    batches.emplace_back().push_back(std::move(tensor));
  }
  return batches;
}

}  // namespace hvd::worker_runtime::negotiation
