// Records in a file that only grows: each is its length, the CRC-32C of its bytes, the CRC-32C of
// those two numbers (four bytes each, least significant first), then its bytes.
#ifndef RENDEZVOUS_JOURNAL_RECORD_FILE_H_
#define RENDEZVOUS_JOURNAL_RECORD_FILE_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hvd {

inline constexpr size_t kRecordHeaderBytes = 12;

// A record as it stands in the file.
std::string EncodeRecord(absl::string_view payload);

// Reads a file of records from its start; `visit` gets each payload, in order, and may end it with
// an error. Returns where the last whole record ends: what lies behind is one that was being
// written when the writer died, cut short or (after a power cut) filled up with zeros.
//   DataLoss: damage of any other kind; says at which offset.   Internal: the file can't be read.
absl::StatusOr<int64_t> ReadRecords(int fd,
                                    const std::function<absl::Status(absl::string_view)>& visit);

}  // namespace hvd

#endif  // RENDEZVOUS_JOURNAL_RECORD_FILE_H_
