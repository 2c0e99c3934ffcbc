// Helpers of ShmCommunicator's operations: block sizes, and the choice of the copy function.
#ifndef COLLECTIVES_SHM_SIZES_H_
#define COLLECTIVES_SHM_SIZES_H_

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "collectives/shm/streaming_copy.h"

namespace hvd::collectives::shm {

inline size_t BlocksFor(size_t bytes, size_t step) { return (bytes + step - 1) / step; }

// The offsets of contiguous parts with these sizes, followed by the total size.
inline std::vector<size_t> Offsets(absl::Span<const size_t> sizes) {
  std::vector<size_t> offsets = {0};
  for (const size_t size : sizes) offsets.push_back(offsets.back() + size);
  return offsets;
}

// Writes to a small slot. Slots are reused soon, so that the readers' caches still hold them: it is
// faster to bypass the caches for more than a few cache lines.
inline void WriteSmall(char* to, const char* from, size_t bytes) {
  constexpr size_t kFewLines = 1024;
  (bytes > kFewLines ? StreamingCopy : PlainCopy)(to, from, bytes);
}

// The copy function for reading `bytes` from the rings into a caller's buffer. For data larger than
// the caches, non-temporal stores avoid both loading the old lines and evicting other data.
inline CopyFunction ReaderFor(size_t bytes) {
  constexpr size_t kLarge = size_t{4} << 20;
  return bytes >= kLarge ? StreamingCopy : PlainCopy;
}

inline size_t LargestOf(absl::Span<const size_t> sizes) {
  return sizes.empty() ? 0 : *std::max_element(sizes.begin(), sizes.end());
}

}  // namespace hvd::collectives::shm

#endif  // COLLECTIVES_SHM_SIZES_H_
