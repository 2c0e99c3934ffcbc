// What the operations of ShmCommunicator have in common: sizes, and how data of a size is copied.
#ifndef COLLECTIVES_SHM_SIZES_H_
#define COLLECTIVES_SHM_SIZES_H_

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "collectives/shm/streaming_copy.h"

namespace hvd::collectives::shm {

inline size_t BlocksFor(size_t bytes, size_t step) { return (bytes + step - 1) / step; }

// Where each rank's bytes begin if they lie one behind the other; the end of all comes last.
inline std::vector<size_t> Offsets(absl::Span<const size_t> sizes) {
  std::vector<size_t> offsets = {0};
  for (const size_t size : sizes) offsets.push_back(offsets.back() + size);
  return offsets;
}

// Slots take turns soon, so the readers' caches still hold them: what is more than a few lines goes
// past the caches.
inline void WriteSmall(char* to, const char* from, size_t bytes) {
  constexpr size_t kFewLines = 1024;
  (bytes > kFewLines ? StreamingCopy : PlainCopy)(to, from, bytes);
}

// What is larger than the caches need not go through them, and need not be read before it is
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
