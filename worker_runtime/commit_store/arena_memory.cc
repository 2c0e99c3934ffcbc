#include "worker_runtime/commit_store/arena_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include <cstdint>

namespace hvd::worker_runtime::commit_store {
namespace {

constexpr size_t kPageBytes = 4096;
constexpr int kCollapse = 25;  // MADV_COLLAPSE, newer than some headers

}  // namespace

size_t RoundUp(size_t size, size_t unit) { return (size + unit - 1) / unit * unit; }

bool TakePages(int fd, off_t offset, void* memory, size_t bytes) {
#ifdef MADV_POPULATE_WRITE
  if (madvise(memory, bytes, MADV_POPULATE_WRITE) == 0) return true;
  if (errno != EINVAL) return false;
#endif
  return fallocate(fd, FALLOC_FL_KEEP_SIZE, offset, static_cast<off_t>(bytes)) == 0;
}

bool TakeHugePages(int fd, off_t offset, char* memory, size_t bytes) {
  size_t taken = 0;
  for (; bytes - taken >= kHugePageBytes; taken += kHugePageBytes) {
    char* const next = memory + taken;
    if (!TakePages(fd, offset + static_cast<off_t>(taken), next, kPageBytes)) return false;
    // MADV_COLLAPSE makes huge pages whatever the system's setting for shared memory is, but only
    // where at least one page is present: so the first small page of each is allocated before.
    if (madvise(next, kHugePageBytes, kCollapse) != 0) break;
  }
  return taken == bytes ||
         TakePages(fd, offset + static_cast<off_t>(taken), memory + taken, bytes - taken);
}

char* MapHugePages(int fd, off_t offset, size_t bytes) {
  // mmap aligns to small pages only: reserves one huge page more than needed, and cuts off both
  // ends.
  void* const room = mmap(nullptr, bytes + kHugePageBytes, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return nullptr;
  const size_t before = RoundUp(reinterpret_cast<uintptr_t>(room), kHugePageBytes) -
                        reinterpret_cast<uintptr_t>(room);
  char* const start = static_cast<char*>(room) + before;
  if (before > 0) munmap(room, before);
  munmap(start + bytes, kHugePageBytes - before);
  if (mmap(start, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, offset) != start) {
    const int error = errno;
    munmap(start, bytes);
    errno = error;
    return nullptr;
  }
  return start;
}

}  // namespace hvd::worker_runtime::commit_store
