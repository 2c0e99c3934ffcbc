// Uninitialised memory for large buffers, in huge pages.
#ifndef BASE_OS_LARGE_MEMORY_H_
#define BASE_OS_LARGE_MEMORY_H_

#include <cstddef>
#include <memory>

namespace hvd::os {

struct FreeLargeMemory {
  void operator()(char* memory) const;
};
using LargeMemory = std::unique_ptr<char, FreeLargeMemory>;

// Returns at least `bytes` (0 allowed) of uninitialised memory, aligned to a cache line. Large
// buffers are in huge pages where the system has them: the kernel would take longer to clear small
// pages than the caller to fill them. nullptr: the system refuses. Thread-safe.
LargeMemory AllocateLargeMemory(size_t bytes);

}  // namespace hvd::os

#endif  // BASE_OS_LARGE_MEMORY_H_
