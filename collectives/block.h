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
std::vector<Block> LayOut(absl::Span<const size_t> counts, size_t unit);
// `count` elements in `parts` blocks that differ by one element at most.
std::vector<Block> LayOutEvenly(size_t count, size_t unit, int parts);

}  // namespace hvd::collectives

#endif  // COLLECTIVES_BLOCK_H_
