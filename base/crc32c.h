// CRC-32C (Castagnoli), the checksum of what is kept: records on disk, commits in memory.
#ifndef BASE_CRC32C_H_
#define BASE_CRC32C_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace hvd {

uint32_t Crc32c(absl::string_view data);

// The checksum of what `crc` is the checksum of, followed by `data`. As fast as memory where the
// processor multiplies without carry.
uint32_t ExtendCrc32c(uint32_t crc, absl::string_view data);

// ExtendCrc32c, while copying `data` to `to`, past the caches: for what is not read again soon.
// REQUIRES: `to` is a multiple of 64.
uint32_t CopyWithCrc32c(uint32_t crc, void* to, absl::string_view data);

namespace internal {

// What runs here, and for tests what would run elsewhere.
enum class Crc32cKernel { kPortable, kClmul128, kClmul512 };
bool Supports(Crc32cKernel kernel);
// `to` may be nullptr: nothing is copied.
uint32_t RunCrc32c(Crc32cKernel kernel, uint32_t crc, void* to, absl::string_view data);

}  // namespace internal

}  // namespace hvd

#endif  // BASE_CRC32C_H_
