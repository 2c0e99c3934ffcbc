#include "collectives/block.h"

namespace hvd::collectives {

std::vector<Block> LayOut(absl::Span<const size_t> counts, size_t unit) {
  std::vector<Block> blocks;
  blocks.reserve(counts.size());
  size_t offset = 0;
  for (const size_t count : counts) {
    blocks.push_back({offset, count * unit});
    offset += count * unit;
  }
  return blocks;
}

std::vector<Block> LayOutEvenly(size_t count, size_t unit, int parts) {
  std::vector<size_t> counts(parts, count / parts);
  for (size_t i = 0; i < count % parts; ++i) ++counts[i];
  return LayOut(counts, unit);
}

}  // namespace hvd::collectives
