// Batches of payloads, one for each write to a journal. After a power cut the file may have the
// size that the last write gave it, with zeros in place of any of its sectors. So no byte of a
// batch is zero, and zeros mark what was lost. Pure.
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

// The format of a batch: its number in the file, the length of its body, the CRC-32C of the body,
// and the CRC-32C of these three, as digits of six bits with the two highest bits set. Then the
// body: each payload after its length (four bytes). Zeros are removed from the body by consistent
// overhead byte stuffing: a byte gives the number of other bytes up to the next removed zero.
inline constexpr size_t kBatchHeaderBytes = 29;

// Adds a payload to the body of a batch.
void AddToBatch(absl::string_view payload, std::string& contents);

// The batch as it stands in the file. `number`: 1 for the first, and so on.
std::string EncodeBatch(uint64_t number, absl::string_view contents);

struct BatchesRead {
  size_t end = 0;     // of the last whole batch
  uint64_t next = 1;  // number of the next
};

// Reads a journal's batches, which begin at `begin`. `visit` gets each payload, in order, and may
// stop the reading with an error. What follows the last whole batch is a batch that was being
// written when the writer died: truncated, or with zeros in it.
// Errors:
//   - DataLoss: any other damage, at this byte: it is not zeros, or not in the last batch.
absl::StatusOr<BatchesRead> ReadBatches(
    absl::string_view bytes, size_t begin,
    const std::function<absl::Status(absl::string_view)>& visit);

}  // namespace hvd::rendezvous::journal

#endif  // RENDEZVOUS_JOURNAL_BATCHES_H_
