// The single-producer, single-consumer byte stream between two ranks in shared memory.
#ifndef COLLECTIVES_SHM_BYTE_PIPE_H_
#define COLLECTIVES_SHM_BYTE_PIPE_H_

#include <cstddef>

#include "collectives/shm/segment/segment.h"

namespace hvd::collectives::shm {

// Copies as many bytes as there is room for; returns their number. Only one thread of one process
// may write to a pipe. The caller must notify the reader.
size_t WriteToPipe(segment::BytePipe& pipe, const char* bytes, size_t size);

// Reads up to `size` bytes; returns their number. Only one thread of one process may read from a
// pipe. The caller must notify the writer.
size_t ReadFromPipe(segment::BytePipe& pipe, char* bytes, size_t size);

// HasRoom is for the writer, HasData for the reader: each loads its own counter relaxed and the
// other end's counter with acquire (see byte_pipe.cc). At the other end the result is only a hint.
inline bool HasRoom(const segment::BytePipe& pipe) {
  return pipe.written.load(std::memory_order_relaxed) - pipe.read.load(std::memory_order_acquire) <
         segment::kPipeBytes;
}
inline bool HasData(const segment::BytePipe& pipe) {
  return pipe.written.load(std::memory_order_acquire) != pipe.read.load(std::memory_order_relaxed);
}

}  // namespace hvd::collectives::shm

#endif  // COLLECTIVES_SHM_BYTE_PIPE_H_
