// CRC-32C (Castagnoli), the checksum of stored data: records on disk, commits in memory.
#ifndef BASE_CRC32C_H_
#define BASE_CRC32C_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace hvd {

uint32_t Crc32c(absl::string_view data);

// Returns the checksum of a text whose first part has the checksum `crc` and whose rest is `data`.
// Limited by memory bandwidth if the processor has carry-less multiplication.
uint32_t ExtendCrc32c(uint32_t crc, absl::string_view data);

// As ExtendCrc32c, and copies `data` to `to` with stores that bypass the caches: for data that is
// not read again soon.
// REQUIRES: `to` is a multiple of 64.
uint32_t CopyWithCrc32c(uint32_t crc, void* to, absl::string_view data);

// Returns the checksum of a text of which the first part has the checksum `first`, and the rest, of
// `size` bytes, the checksum `second`: so several threads may each compute a part.
uint32_t JoinCrc32c(uint32_t first, uint32_t second, size_t size);

namespace internal {

// The implementations for different processors; tests run all that this processor supports.
enum class Crc32cKernel { kPortable, kClmul128, kClmul512 };
bool Supports(Crc32cKernel kernel);
// `to` may be nullptr: nothing is copied.
uint32_t RunCrc32c(Crc32cKernel kernel, uint32_t crc, void* to, absl::string_view data);

}  // namespace internal

}  // namespace hvd

#endif  // BASE_CRC32C_H_
