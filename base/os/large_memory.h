// Memory for data of any size that is written before it is read.
#ifndef BASE_OS_LARGE_MEMORY_H_
#define BASE_OS_LARGE_MEMORY_H_

#include <cstddef>
#include <memory>

namespace hvd::os {

struct FreeLargeMemory {
  void operator()(char* memory) const;
};
using LargeMemory = std::unique_ptr<char, FreeLargeMemory>;

// At least `bytes` of any contents, also if these are 0, at a multiple of a cache line. Of much, in
// huge pages where the system gives them: to clear as much in small ones takes longer than to fill
// it. nullptr: the system refuses. Thread-safe.
LargeMemory AllocateLargeMemory(size_t bytes);

}  // namespace hvd::os

#endif  // BASE_OS_LARGE_MEMORY_H_
