// CRC-32C (Castagnoli), the checksum of stored data: records on disk, commits in memory.
#ifndef BASE_CRC32C_H_
#define BASE_CRC32C_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace hvd {

uint32_t Crc32c(absl::string_view data);

// The checksum of a text whose first part has the checksum `crc` and whose rest is `data`. As fast
// as memory if the processor has carry-less multiplication.
uint32_t ExtendCrc32c(uint32_t crc, absl::string_view data);

// ExtendCrc32c that also copies `data` to `to`, past the caches: for data that is not read again
// soon.
// REQUIRES: `to` is a multiple of 64.
uint32_t CopyWithCrc32c(uint32_t crc, void* to, absl::string_view data);

namespace internal {

// The kernel in use here; tests also run those for other processors.
enum class Crc32cKernel { kPortable, kClmul128, kClmul512 };
bool Supports(Crc32cKernel kernel);
// `to` may be nullptr: nothing is copied.
uint32_t RunCrc32c(Crc32cKernel kernel, uint32_t crc, void* to, absl::string_view data);

}  // namespace internal

}  // namespace hvd

#endif  // BASE_CRC32C_H_
