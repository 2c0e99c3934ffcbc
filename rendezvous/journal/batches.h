// Zero-free batches of payloads, one for each write to a journal. After a power cut, a file system
// may have extended the file without writing all sectors of the last write: those read as zeros. A
// batch contains no zero byte, so any zero marks lost data. Pure.
#ifndef RENDEZVOUS_JOURNAL_BATCHES_H_
#define RENDEZVOUS_JOURNAL_BATCHES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hvd::rendezvous::journal {

// The format of a batch. Header: the batch's number in the file, the length of the body, the
// CRC-32C of the body, and the CRC-32C of these three numbers. Numbers are written in base 64, one
// digit per byte, with the two highest bits of each byte set. Body: each payload, preceded by its
// length (four bytes); encoded with consistent overhead byte stuffing (COBS), which removes zeros:
// each code byte gives the number of non-zero bytes up to the next removed zero.
inline constexpr size_t kBatchHeaderBytes = 29;

// Appends a payload to the contents of a batch.
void AddToBatch(absl::string_view payload, std::string& contents);

// Encodes a batch. `number` is 1 for the first batch of a file.
std::string EncodeBatch(uint64_t number, absl::string_view contents);

struct BatchesRead {
  size_t end = 0;     // offset of the end of the last complete batch
  uint64_t next = 1;  // number of the next batch
};

// Reads the batches from offset `begin` on. `visit` gets each payload, in order; an error that it
// returns stops the reading. An incomplete last batch (truncated, or containing zeros) is not an
// error: the writer died while writing it.
// Errors:
//   - DataLoss: other damage: not zeros, or not in the last batch. Names the offset.
absl::StatusOr<BatchesRead> ReadBatches(
    absl::string_view bytes, size_t begin,
    const std::function<absl::Status(absl::string_view)>& visit);

}  // namespace hvd::rendezvous::journal

#endif  // RENDEZVOUS_JOURNAL_BATCHES_H_
