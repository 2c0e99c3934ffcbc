// Records one after another: each is its length, the CRC-32C of its bytes, the CRC-32C of those two
// numbers (four bytes each, least significant first), then its bytes. A journal begins with one;
// those of format 2 have nothing else. Pure.
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

// The payload of the record that `bytes` begin with; nullopt: there is no whole one, because it was
// being written when the writer died: it is cut short or (after a power cut) filled up with zeros.
//   DataLoss: damage of any other kind.
absl::StatusOr<std::optional<absl::string_view>> FirstRecord(absl::string_view bytes);

// Reads the records that begin at `begin`; `visit` gets each payload, in order, and may end it with
// an error. Returns where the last whole record ends.
//   DataLoss: as FirstRecord, and at which byte.
absl::StatusOr<size_t> ReadRecords(absl::string_view bytes, size_t begin,
                                   const std::function<absl::Status(absl::string_view)>& visit);

}  // namespace hvd::rendezvous::journal

#endif  // RENDEZVOUS_JOURNAL_RECORD_FILE_H_
