// The format of checksummed records, one after another. Each is its length, the CRC-32C of its
// bytes, the CRC-32C of those two numbers (four bytes each, least significant first), then its
// bytes. A journal begins with one record; a journal of format 2 consists of them. Pure.
#ifndef RENDEZVOUS_JOURNAL_RECORD_FILE_H_
#define RENDEZVOUS_JOURNAL_RECORD_FILE_H_

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hvd::rendezvous::journal {

inline constexpr size_t kRecordHeaderBytes = 12;

// A record as it stands in the file.
std::string EncodeRecord(absl::string_view payload);

// The payload of the first record of `bytes`. nullopt: it is not whole, because the writer died
// while writing it: it is truncated or (after a power cut) filled up with zeros.
// Errors:
//   - DataLoss: any other damage.
absl::StatusOr<std::optional<absl::string_view>> FirstRecord(absl::string_view bytes);

// Reads the records that begin at `begin`. `visit` gets each payload, in order, and may stop the
// reading with an error. Returns where the last whole record ends.
// Errors:
//   - DataLoss: that of FirstRecord, and at which byte.
absl::StatusOr<size_t> ReadRecords(absl::string_view bytes, size_t begin,
                                   const std::function<absl::Status(absl::string_view)>& visit);

}  // namespace hvd::rendezvous::journal

#endif  // RENDEZVOUS_JOURNAL_RECORD_FILE_H_
