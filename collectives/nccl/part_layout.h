// The division of a collective's data into parts that are staged one after the other.
#ifndef COLLECTIVES_NCCL_PART_LAYOUT_H_
#define COLLECTIVES_NCCL_PART_LAYOUT_H_

#include <cstddef>
#include <vector>

#include "absl/types/span.h"

namespace hvd::collectives::nccl {

// The data consists of blocks, such as one per rank, in one buffer. A part takes a slice of every
// block, in proportion to the block's size, so that a part of an all-gather is an all-gather.
// Pure: ranks with the same arguments have the same parts. Immutable.
class PartLayout {
 public:
  // A block's slice in a part, in elements.
  struct Slice {
    size_t whole = 0;   // its offset in the data
    size_t packed = 0;  // its offset in the part, in which slices are contiguous
    size_t count = 0;
  };

  // `counts` has the elements of each block, of `unit` bytes. Parts have about `part_bytes`.
  PartLayout(absl::Span<const size_t> counts, size_t unit, size_t part_bytes);

  // At least 1: an operation without data is one part.
  size_t parts() const { return parts_; }
  // The slices of part `part`, one per block.
  std::vector<Slice> Slices(size_t part) const;

  // The largest size in bytes of a part of `blocks` blocks.
  static size_t MostBytes(size_t part_bytes, size_t blocks);

 private:
  const std::vector<size_t> counts_;
  size_t parts_ = 1;
};

// The sizes of the slices, in elements.
std::vector<size_t> CountsOf(absl::Span<const PartLayout::Slice> slices);

}  // namespace hvd::collectives::nccl

#endif  // COLLECTIVES_NCCL_PART_LAYOUT_H_
