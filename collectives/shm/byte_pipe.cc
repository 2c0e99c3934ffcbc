#include "collectives/shm/byte_pipe.h"

#include <algorithm>
#include <cstring>

namespace hvd::collectives::shm {
namespace {

// Calls copy(place in the pipe, offset, size) for the one or two contiguous parts of the ring
// buffer that hold the `size` bytes from `position` on.
template <typename Copy>
void ForStretches(uint64_t position, size_t size, Copy&& copy) {
  const size_t at = position % segment::kPipeBytes;
  const size_t first = std::min(size, segment::kPipeBytes - at);
  if (first > 0) copy(at, size_t{0}, first);
  if (size > first) copy(size_t{0}, first, size - first);
}

}  // namespace

// Memory order: each end alone stores its own counter, so it loads that one relaxed. It loads the
// other end's counter with acquire, which pairs with that end's release store: so the reader sees
// the bytes that `written` counts, and the writer overwrites only bytes that the reader has copied.
//
// The counters are never reduced modulo the size, so that full and empty differ. The other end's
// counter is clamped: a peer that writes nonsense must not cause an access out of bounds.
size_t WriteToPipe(segment::BytePipe& pipe, const char* bytes, size_t size) {
  const uint64_t written = pipe.written.load(std::memory_order_relaxed);
  const size_t used = written - pipe.read.load(std::memory_order_acquire);
  size = std::min(size, segment::kPipeBytes - std::min(used, segment::kPipeBytes));
  ForStretches(written, size, [&](size_t at, size_t offset, size_t count) {
    memcpy(pipe.data + at, bytes + offset, count);
  });
  pipe.written.store(written + size, std::memory_order_release);
  return size;
}

size_t ReadFromPipe(segment::BytePipe& pipe, char* bytes, size_t size) {
  const uint64_t read = pipe.read.load(std::memory_order_relaxed);
  const size_t there = pipe.written.load(std::memory_order_acquire) - read;
  size = std::min(size, std::min(there, segment::kPipeBytes));
  ForStretches(read, size, [&](size_t at, size_t offset, size_t count) {
    memcpy(bytes + offset, pipe.data + at, count);
  });
  pipe.read.store(read + size, std::memory_order_release);
  return size;
}

}  // namespace hvd::collectives::shm
