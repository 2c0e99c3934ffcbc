// Memory mapped from a file, in huge pages where the system has them. Functions without state,
// thread-safe.
#ifndef WORKER_RUNTIME_COMMIT_STORE_ARENA_MEMORY_H_
#define WORKER_RUNTIME_COMMIT_STORE_ARENA_MEMORY_H_

#include <sys/types.h>

#include <cstddef>

namespace hvd::worker_runtime::commit_store {

constexpr size_t kHugePageBytes = size_t{2} << 20;

size_t RoundUp(size_t size, size_t unit);

// Maps this part of the file for reading and writing, at a multiple of kHugePageBytes, so that huge
// pages can be mapped as such. nullptr and errno if there is no room. `offset` and `bytes` are
// multiples of kHugePageBytes.
char* MapHugePages(int fd, off_t offset, size_t bytes);

// Allocates the mapped memory; its contents stay. Without this, writing to memory that the system
// does not have would end the process. Returns false, with errno, if there is not enough.
bool TakePages(int fd, off_t offset, void* memory, size_t bytes);

// The same in huge pages as far as the kernel can: clearing the same amount in small pages takes
// ten times as long. For a result of MapHugePages.
bool TakeHugePages(int fd, off_t offset, char* memory, size_t bytes);

}  // namespace hvd::worker_runtime::commit_store

#endif  // WORKER_RUNTIME_COMMIT_STORE_ARENA_MEMORY_H_
