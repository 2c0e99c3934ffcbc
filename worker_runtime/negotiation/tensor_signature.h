// The signature of a tensor request: all of the request but its memory. Ranks send and compare it.
#ifndef WORKER_RUNTIME_NEGOTIATION_TENSOR_SIGNATURE_H_
#define WORKER_RUNTIME_NEGOTIATION_TENSOR_SIGNATURE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "collectives/types.h"
#include "worker_runtime/negotiation/op_kind.h"

namespace hvd::worker_runtime::negotiation {

// Immutable once it is shared through a SignaturePtr.
struct TensorSignature {
  std::string name;
  OpKind op = OpKind::kAllReduce;
  collectives::DataType type = collectives::DataType::kFloat32;
  Reduction reduction = Reduction::kSum;
  std::vector<int64_t> shape;
  double prescale = 1.0;
  double postscale = 1.0;
  int root_rank = 0;
  std::vector<int32_t> splits;  // all-to-all: the rows for each rank; empty: even splits
  bool on_device = false;       // whether the tensor is in the memory of a CUDA device
  // What the caller makes of the operation, for errors: "reduce to rank 1". Equal on all ranks.
  std::string meaning;

  friend bool operator==(const TensorSignature& a, const TensorSignature& b) {
    return a.op == b.op && a.type == b.type && a.reduction == b.reduction && a.shape == b.shape &&
           a.prescale == b.prescale && a.postscale == b.postscale && a.root_rank == b.root_rank &&
           a.splits == b.splits && a.on_device == b.on_device && a.meaning == b.meaning &&
           a.name == b.name;
  }
  friend bool operator!=(const TensorSignature& a, const TensorSignature& b) { return !(a == b); }
};
using SignaturePtr = std::shared_ptr<const TensorSignature>;

// Whether no dimension is negative and the number of bytes does not overflow.
bool IsSaneShape(absl::Span<const int64_t> shape, collectives::DataType type);

int64_t ElementCount(absl::Span<const int64_t> shape);
size_t ByteCount(const TensorSignature& signature);
size_t RowBytes(const TensorSignature& signature);  // the bytes per index of the first dimension

// Returns the number of rows that this all-to-all request sends to `rank` of `size` ranks.
int32_t RowsTo(const TensorSignature& signature, int rank, int size);

// "[3, 2]"
std::string ShapeText(absl::Span<const int64_t> shape);
// "rank 3", "ranks 0, 2 and 3"; a long list is abbreviated.
std::string RanksText(absl::Span<const int> ranks);

}  // namespace hvd::worker_runtime::negotiation

#endif  // WORKER_RUNTIME_NEGOTIATION_TENSOR_SIGNATURE_H_
