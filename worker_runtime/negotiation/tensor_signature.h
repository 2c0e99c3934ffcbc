// The signature of a tensor request, which ranks compare: the request without its memory.
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

// A value; immutable once shared.
struct TensorSignature {
  std::string name;
  OpKind op = OpKind::kAllReduce;
  collectives::DataType type = collectives::DataType::kFloat32;
  Reduction reduction = Reduction::kSum;
  std::vector<int64_t> shape;
  double prescale = 1.0;
  double postscale = 1.0;
  int root_rank = 0;
  std::vector<int32_t> splits;  // all-to-all; empty: evenly
  bool on_device = false;       // whether its memory is a CUDA device's

  friend bool operator==(const TensorSignature& a, const TensorSignature& b) {
    return a.op == b.op && a.type == b.type && a.reduction == b.reduction && a.shape == b.shape &&
           a.prescale == b.prescale && a.postscale == b.postscale && a.root_rank == b.root_rank &&
           a.splits == b.splits && a.on_device == b.on_device && a.name == b.name;
  }
  friend bool operator!=(const TensorSignature& a, const TensorSignature& b) { return !(a == b); }
};
using SignaturePtr = std::shared_ptr<const TensorSignature>;

// Whether the dimensions are not negative and the bytes can be counted.
bool IsSaneShape(absl::Span<const int64_t> shape, collectives::DataType type);

int64_t ElementCount(absl::Span<const int64_t> shape);
size_t ByteCount(const TensorSignature& signature);
size_t RowBytes(const TensorSignature& signature);  // of one index of the first dimension

// The number of rows that a rank sends to `rank` in this all-to-all among `size` ranks.
int32_t RowsTo(const TensorSignature& signature, int rank, int size);

// "[3, 2]"
std::string ShapeText(absl::Span<const int64_t> shape);
// "rank 3", "ranks 0, 2 and 3"; long lists are cut short.
std::string RanksText(absl::Span<const int> ranks);

}  // namespace hvd::worker_runtime::negotiation

#endif  // WORKER_RUNTIME_NEGOTIATION_TENSOR_SIGNATURE_H_
