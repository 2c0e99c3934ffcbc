// The byte range of a buffer that belongs to one rank, and the layout of such ranges. Pure.
#ifndef COLLECTIVES_BLOCK_H_
#define COLLECTIVES_BLOCK_H_

#include <cstddef>
#include <vector>

#include "absl/types/span.h"

namespace hvd::collectives {

struct Block {
  size_t offset = 0;
  size_t bytes = 0;
};

// Contiguous blocks with sizes counts[r] * unit.
inline std::vector<Block> LayOut(absl::Span<const size_t> counts, size_t unit) {
  std::vector<Block> blocks;
  blocks.reserve(counts.size());
  size_t offset = 0;
  for (const size_t count : counts) {
    blocks.push_back({offset, count * unit});
    offset += count * unit;
  }
  return blocks;
}

// `count` elements in `parts` blocks that differ by one element at most.
inline std::vector<Block> LayOutEvenly(size_t count, size_t unit, int parts) {
  std::vector<size_t> counts(parts, count / parts);
  for (size_t i = 0; i < count % parts; ++i) ++counts[i];
  return LayOut(counts, unit);
}

}  // namespace hvd::collectives

#endif  // COLLECTIVES_BLOCK_H_
