#include "collectives/nccl/part_layout.h"

#include <algorithm>
#include <numeric>

namespace hvd::collectives::nccl {
namespace {

// Slices begin at multiples of this many elements of their block, so that copies are aligned to
// cache lines if the block is.
constexpr size_t kAlignment = 64;
constexpr size_t kLargestUnit = 8;

// Where the slice of part `part` of `parts` begins in a block of `count` elements.
size_t Boundary(size_t count, size_t part, size_t parts) {
  return part == parts ? count : count * part / parts / kAlignment * kAlignment;
}

}  // namespace

PartLayout::PartLayout(absl::Span<const size_t> counts, size_t unit, size_t part_bytes)
    : counts_(counts.begin(), counts.end()) {
  const size_t bytes = std::accumulate(counts.begin(), counts.end(), size_t{0}) * unit;
  // Equal parts, not full ones and a rest: the last part's copy to the device overlaps with
  // nothing, and a short rest would hide little of the copy before it.
  parts_ = std::max<size_t>(1, (bytes + part_bytes - 1) / part_bytes);
}

std::vector<PartLayout::Slice> PartLayout::Slices(size_t part) const {
  std::vector<Slice> slices;
  slices.reserve(counts_.size());
  size_t block = 0, packed = 0;
  for (const size_t count : counts_) {
    const size_t begin = Boundary(count, part, parts_);
    const size_t size = Boundary(count, part + 1, parts_) - begin;
    slices.push_back({block + begin, packed, size});
    block += count;
    packed += size;
  }
  return slices;
}

size_t PartLayout::MostBytes(size_t part_bytes, size_t blocks) {
  return part_bytes + blocks * kAlignment * kLargestUnit;
}

std::vector<size_t> CountsOf(absl::Span<const PartLayout::Slice> slices) {
  std::vector<size_t> counts;
  counts.reserve(slices.size());
  for (const PartLayout::Slice& slice : slices) counts.push_back(slice.count);
  return counts;
}

}  // namespace hvd::collectives::nccl
