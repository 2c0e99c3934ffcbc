// Common helpers of ShmCommunicator's operations: sizes, and the copy function for a size.
#ifndef COLLECTIVES_SHM_SIZES_H_
#define COLLECTIVES_SHM_SIZES_H_

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "collectives/shm/streaming_copy.h"

namespace hvd::collectives::shm {

inline size_t BlocksFor(size_t bytes, size_t step) { return (bytes + step - 1) / step; }

// The offset of each rank's bytes if they are contiguous; the end of all comes last.
inline std::vector<size_t> Offsets(absl::Span<const size_t> sizes) {
  std::vector<size_t> offsets = {0};
  for (const size_t size : sizes) offsets.push_back(offsets.back() + size);
  return offsets;
}

// Slots are reused soon, so the readers' caches still hold them: data of more than a few lines
// bypasses the caches.
inline void WriteSmall(char* to, const char* from, size_t bytes) {
  constexpr size_t kFewLines = 1024;
  (bytes > kFewLines ? StreamingCopy : PlainCopy)(to, from, bytes);
}

// Data larger than the caches need not go through them, and need not be read before it is
// overwritten.
inline CopyFunction ReaderFor(size_t bytes) {
  constexpr size_t kLarge = size_t{4} << 20;
  return bytes >= kLarge ? StreamingCopy : PlainCopy;
}

inline size_t LargestOf(absl::Span<const size_t> sizes) {
  return sizes.empty() ? 0 : *std::max_element(sizes.begin(), sizes.end());
}

}  // namespace hvd::collectives::shm

#endif  // COLLECTIVES_SHM_SIZES_H_
