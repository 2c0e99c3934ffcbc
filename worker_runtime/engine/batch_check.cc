#include "worker_runtime/engine/batch_check.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "worker_runtime/negotiation/mismatch.h"

namespace hvd::worker_runtime::engine {
namespace {

using negotiation::PlannedTensor;
using negotiation::TensorSignature;

// Fused tensors are reduced as one, with the first tensor's type and factors.
bool IsAlike(const TensorSignature& a, const TensorSignature& first) {
  return a.op == first.op && a.type == first.type && a.reduction == first.reduction &&
         a.prescale == first.prescale && a.postscale == first.postscale &&
         a.on_device == first.on_device;
}

// Whether a result with these numbers of rows has a possible size. `rows` is empty for operations
// whose result has the size of the request.
template <typename Rows>
bool IsSaneResult(const TensorSignature& signature, const Rows& rows) {
  if (rows.empty()) return true;
  if (signature.shape.empty()) return false;
  std::vector<int64_t> shape = signature.shape;
  shape.front() = 0;
  for (const int64_t more : rows) {
    if (more < 0 || more > std::numeric_limits<int64_t>::max() - shape.front()) return false;
    shape.front() += more;
  }
  return negotiation::IsSaneShape(shape, signature.type);
}

bool FitsRequest(const PlannedTensor& planned, const OperationTensor& part, int rank, int size) {
  const TensorSignature& own = part.signature();
  const std::array<negotiation::SignaturePtr, 2> both = {planned.signature,
                                                         part.operation->signatures[part.index]};
  if (negotiation::FindMismatch(both).has_value()) return false;
  // The rows that this rank sends to itself are copied by the own request's numbers.
  if (!planned.first_dims.empty() && planned.first_dims[rank] != own.shape.front()) return false;
  return planned.received_splits.empty() ||
         planned.received_splits[rank] == negotiation::RowsTo(own, rank, size);
}

}  // namespace

absl::Status CheckBatch(const negotiation::Batch& batch,
                        absl::Span<const std::optional<OperationTensor>> parts, int rank,
                        int size) {
  constexpr size_t kMostBytes = size_t{1} << 62;  // a sum of two such sizes does not overflow
  size_t bytes = 0;
  for (size_t i = 0; i < batch.size(); ++i) {
    const PlannedTensor& planned = batch[i];
    bytes += negotiation::ByteCount(*planned.signature);
    const bool fits = bytes <= kMostBytes &&
                      IsAlike(*planned.signature, *batch.front().signature) &&
                      (!parts[i].has_value() || FitsRequest(planned, *parts[i], rank, size)) &&
                      IsSaneResult(*planned.signature, planned.first_dims) &&
                      IsSaneResult(*planned.signature, planned.received_splits);
    if (fits) continue;
    return absl::InternalError(absl::StrCat("the plan for '", planned.signature->name,
                                            "' does not fit the request of rank ", rank));
  }
  return absl::OkStatus();
}

}  // namespace hvd::worker_runtime::engine
