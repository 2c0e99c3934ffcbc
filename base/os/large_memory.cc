#include "base/os/large_memory.h"

#include <sys/mman.h>

#include <cstdlib>

namespace hvd::os {
namespace {

constexpr size_t kLine = 64;
constexpr size_t kHugePage = size_t{2} << 20;
// glibc's largest mmap threshold. It may keep freed blocks below this size for reuse, with their
// pages mapped; larger blocks always come from the system, with new pages.
constexpr size_t kNeverKept = size_t{32} << 20;

}  // namespace

void FreeLargeMemory::operator()(char* memory) const { free(memory); }

LargeMemory AllocateLargeMemory(size_t bytes) {
  const bool is_much = bytes >= kNeverKept;
  void* memory = nullptr;
  if (posix_memalign(&memory, is_much ? kHugePage : kLine, bytes > 0 ? bytes : 1) != 0) {
    return nullptr;
  }
  // Only whole huge pages, since the memory behind the end is not part of this block. The call has
  // no effect on systems without huge pages.
  if (is_much) madvise(memory, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
  return LargeMemory(static_cast<char*>(memory));
}

}  // namespace hvd::os
