// Functions to map and allocate shared memory of a memfd, in huge pages where possible. Stateless
// and thread-safe.
#ifndef WORKER_RUNTIME_COMMIT_STORE_ARENA_MEMORY_H_
#define WORKER_RUNTIME_COMMIT_STORE_ARENA_MEMORY_H_

#include <sys/types.h>

#include <cstddef>

namespace hvd::worker_runtime::commit_store {

constexpr size_t kHugePageBytes = size_t{2} << 20;

size_t RoundUp(size_t size, size_t unit);

// Maps a part of the file for reading and writing, at an address that is a multiple of
// kHugePageBytes, which huge pages need. Returns nullptr, with errno, if there is no room.
// REQUIRES: `offset` and `bytes` are multiples of kHugePageBytes.
char* MapHugePages(int fd, off_t offset, size_t bytes);

// Allocates the pages of mapped memory, keeping its contents. Returns false, with errno, if there
// is not enough memory. Without this, a later write would kill the process in that case (SIGBUS).
bool TakePages(int fd, off_t offset, void* memory, size_t bytes);

// Like TakePages, but in huge pages as far as the kernel can: allocating the same amount in small
// pages takes ten times as long. REQUIRES: `memory` is a result of MapHugePages.
bool TakeHugePages(int fd, off_t offset, char* memory, size_t bytes);

}  // namespace hvd::worker_runtime::commit_store

#endif  // WORKER_RUNTIME_COMMIT_STORE_ARENA_MEMORY_H_
