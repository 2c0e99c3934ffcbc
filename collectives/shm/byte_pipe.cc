#include "collectives/shm/byte_pipe.h"

#include <algorithm>
#include <cstring>

namespace hvd::collectives::shm {
namespace {

// Calls copy(place in the pipe, offset, size) for the one or two stretches from `position` on.
template <typename Copy>
void ForStretches(uint64_t position, size_t size, Copy&& copy) {
  const size_t at = position % segment::kPipeBytes;
  const size_t first = std::min(size, segment::kPipeBytes - at);
  if (first > 0) copy(at, size_t{0}, first);
  if (size > first) copy(size_t{0}, first, size - first);
}

}  // namespace

// Each end is the only one to store its own counter, so it may load that relaxed. The other's is
// loaded with acquire, which pairs with its release: the reader sees the bytes that `written`
// counts, and the writer overwrites only what the reader has copied.
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
