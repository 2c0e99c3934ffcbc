#include "base/os/large_memory.h"

#include <sys/mman.h>

#include <cstdlib>

namespace hvd::os {
namespace {

constexpr size_t kLine = 64;
constexpr size_t kHugePage = size_t{2} << 20;
// The C library keeps freed memory of less than this for the next one who asks, who then finds its
// pages there already. Anything larger comes from the system each time.
constexpr size_t kNeverKept = size_t{32} << 20;

}  // namespace

void FreeLargeMemory::operator()(char* memory) const { free(memory); }

LargeMemory AllocateLargeMemory(size_t bytes) {
  const bool is_much = bytes >= kNeverKept;
  void* memory = nullptr;
  if (posix_memalign(&memory, is_much ? kHugePage : kLine, bytes > 0 ? bytes : 1) != 0) {
    return nullptr;
  }
  // Whole ones only: what is behind the end is somebody else's. Where there are none it does not
  // matter.
  if (is_much) madvise(memory, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
  return LargeMemory(static_cast<char*>(memory));
}

}  // namespace hvd::os
