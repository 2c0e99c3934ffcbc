// A single-producer, single-consumer ring buffer of bytes in shared memory, from one rank to
// another.
#ifndef COLLECTIVES_SHM_BYTE_PIPE_H_
#define COLLECTIVES_SHM_BYTE_PIPE_H_

#include <cstddef>

#include "collectives/shm/segment/segment.h"

namespace hvd::collectives::shm {

// Copies as many of the `size` bytes into the pipe as there is room for, and returns their number,
// which may be 0. Does not block. Only one thread of one process may write to a pipe. The caller
// must wake the reader.
size_t WriteToPipe(segment::BytePipe& pipe, const char* bytes, size_t size);

// Moves up to `size` bytes out of the pipe, and returns their number, which may be 0. Does not
// block. Only one thread of one process may read from a pipe. The caller must wake the writer.
size_t ReadFromPipe(segment::BytePipe& pipe, char* bytes, size_t size);

// Whether there is room for a byte, and whether there is a byte to read. HasRoom is for the writer,
// HasData for the reader: each loads its own counter relaxed and the other end's counter with
// acquire (see byte_pipe.cc). Called at the other end, the result is only a hint.
inline bool HasRoom(const segment::BytePipe& pipe) {
  return pipe.written.load(std::memory_order_relaxed) - pipe.read.load(std::memory_order_acquire) <
         segment::kPipeBytes;
}
inline bool HasData(const segment::BytePipe& pipe) {
  return pipe.written.load(std::memory_order_acquire) != pipe.read.load(std::memory_order_relaxed);
}

}  // namespace hvd::collectives::shm

#endif  // COLLECTIVES_SHM_BYTE_PIPE_H_
