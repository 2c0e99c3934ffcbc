#include "worker_runtime/negotiation/tensor_signature.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hvd::worker_runtime::negotiation {

bool IsSaneShape(absl::Span<const int64_t> shape, collectives::DataType type) {
  constexpr int64_t kMostBytes = int64_t{1} << 62;
  // Dimensions of 0 are skipped, so that the product of any subset of the dimensions (RowBytes)
  // can't overflow either.
  int64_t bytes = static_cast<int64_t>(collectives::SizeOf(type));
  for (int64_t dim : shape) {
    if (dim < 0) return false;
    if (dim == 0) continue;
    if (bytes > kMostBytes / dim) return false;
    bytes *= dim;
  }
  return true;
}

int64_t ElementCount(absl::Span<const int64_t> shape) {
  int64_t count = 1;
  for (int64_t dim : shape) count *= dim;
  return count;
}

size_t ByteCount(const TensorSignature& signature) {
  return static_cast<size_t>(ElementCount(signature.shape)) * collectives::SizeOf(signature.type);
}

size_t RowBytes(const TensorSignature& signature) {
  if (signature.shape.empty()) return collectives::SizeOf(signature.type);
  const auto row = absl::MakeConstSpan(signature.shape).subspan(1);
  return static_cast<size_t>(ElementCount(row)) * collectives::SizeOf(signature.type);
}

// Without splits the rows are divided evenly. CheckRequest has refused a number of rows that can't
// be, or that exceeds 32 bits for a rank.
int32_t RowsTo(const TensorSignature& signature, int rank, int size) {
  if (!signature.splits.empty()) return signature.splits[rank];
  return static_cast<int32_t>(signature.shape.front() / size);
}

std::string ShapeText(absl::Span<const int64_t> shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

std::string RanksText(absl::Span<const int> ranks) {
  // Bounds the text in a large world.
  constexpr size_t kMost = 8;
  if (ranks.empty()) return "no rank";
  if (ranks.size() == 1) return absl::StrCat("rank ", ranks[0]);
  if (ranks.size() <= kMost) {
    return absl::StrCat("ranks ", absl::StrJoin(ranks.first(ranks.size() - 1), ", "), " and ",
                        ranks.back());
  }
  return absl::StrCat("ranks ", absl::StrJoin(ranks.first(kMost), ", "), " and ",
                      ranks.size() - kMost, " others");
}

}  // namespace hvd::worker_runtime::negotiation
