// The format of checksummed records. A record is: the length of the payload, the CRC-32C of the
// payload, the CRC-32C of these two numbers (four bytes each, little-endian), and the payload. A
// journal begins with one record; a journal of format 2 is a sequence of records. Pure.
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

// Encodes a record.
std::string EncodeRecord(absl::string_view payload);

// The payload of the first record in `bytes`. Returns nullopt if the record is incomplete, because
// the writer died while writing it: truncated, or (after a power cut) padded with zeros.
// Errors:
//   - DataLoss: any other damage.
absl::StatusOr<std::optional<absl::string_view>> FirstRecord(absl::string_view bytes);

// Reads the records from offset `begin` on. `visit` gets each payload, in order; an error that it
// returns stops the reading. Returns the end offset of the last complete record.
// Errors:
//   - DataLoss: a record is damaged, as in FirstRecord; names the offset.
absl::StatusOr<size_t> ReadRecords(absl::string_view bytes, size_t begin,
                                   const std::function<absl::Status(absl::string_view)>& visit);

}  // namespace hvd::rendezvous::journal

#endif  // RENDEZVOUS_JOURNAL_RECORD_FILE_H_
