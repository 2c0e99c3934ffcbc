// Batches of payloads, one for each write to a journal. After a power cut the file may have the
// size that the last write gave it, but zeros in the place of any of its sectors: so no byte of a
// batch is zero, and zeros show what was lost. Pure.
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

// A batch: its number in the file, the length of its body, the CRC-32C of that, and the CRC-32C of
// these three, as digits of six bits with the two highest bits set; then the body: each payload
// after its length (four bytes), all that with its zeros taken out (consistent overhead byte
// stuffing: a byte says after how many others a zero was).
inline constexpr size_t kBatchHeaderBytes = 29;

// Adds a payload to what will be a batch's body.
void AddToBatch(absl::string_view payload, std::string& contents);

// The batch as it stands in the file. `number`: 1 for the first, and so on.
std::string EncodeBatch(uint64_t number, absl::string_view contents);

struct BatchesRead {
  size_t end = 0;     // of the last whole batch
  uint64_t next = 1;  // number of the next
};

// Reads a journal's batches, which begin at `begin`; `visit` gets each payload, in order, and may
// end it with an error. What lies behind their end is a batch that was being written when the
// writer died: cut short, or with zeros in it.
//   DataLoss: damage of any other kind, at this byte: bytes that are no zeros, or in what is not
//   the last batch.
absl::StatusOr<BatchesRead> ReadBatches(
    absl::string_view bytes, size_t begin,
    const std::function<absl::Status(absl::string_view)>& visit);

}  // namespace hvd::rendezvous::journal

#endif  // RENDEZVOUS_JOURNAL_BATCHES_H_
