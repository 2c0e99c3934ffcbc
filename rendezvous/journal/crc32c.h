// CRC-32C (Castagnoli), the checksum of records on disk.
#ifndef RENDEZVOUS_JOURNAL_CRC32C_H_
#define RENDEZVOUS_JOURNAL_CRC32C_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace hvd {

uint32_t Crc32c(absl::string_view data);

}  // namespace hvd

#endif  // RENDEZVOUS_JOURNAL_CRC32C_H_
