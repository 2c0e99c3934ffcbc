// Copy functions for writing into shared memory.
#ifndef COLLECTIVES_SHM_STREAMING_COPY_H_
#define COLLECTIVES_SHM_STREAMING_COPY_H_

#include <cstddef>

namespace hvd::collectives::shm {

using CopyFunction = void (*)(void* to, const void* from, size_t bytes);

// Through the caches. Best between cores that share one.
void PlainCopy(void* to, const void* from, size_t bytes);

// With non-temporal stores, which bypass the caches, so that lines which another core holds need
// not be fetched first. Best between cores that share no cache. The written data is visible to
// other cores before any later store of this thread. The same as PlainCopy if the CPU lacks AVX.
void StreamingCopy(void* to, const void* from, size_t bytes);

}  // namespace hvd::collectives::shm

#endif  // COLLECTIVES_SHM_STREAMING_COPY_H_
