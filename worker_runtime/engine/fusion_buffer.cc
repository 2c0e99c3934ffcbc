#include "worker_runtime/engine/fusion_buffer.h"

#include <cstring>

#include "absl/strings/str_cat.h"

namespace hvd::worker_runtime::engine {

absl::StatusOr<char*> FusionBuffer::Reserve(size_t bytes) {
  // Grows to the largest batch so far and is kept: fresh memory costs page faults in each step.
  if (bytes > capacity_) {
    data_.reset();  // first, so that the old and the new memory do not exist at once
    capacity_ = 0;
    data_ = os::AllocateLargeMemory(bytes);
    if (data_ == nullptr) {
      return absl::ResourceExhaustedError(
          absl::StrCat("no memory for a buffer of ", bytes, " bytes"));
    }
    capacity_ = bytes;
  }
  return data_.get();
}

void FusionBuffer::Unpack(absl::Span<const collectives::Stretch> pieces) const {
  const char* from = data_.get();
  for (const collectives::Stretch& piece : pieces) {
    if (piece.bytes > 0 && piece.data != nullptr) std::memcpy(piece.data, from, piece.bytes);
    from += piece.bytes;
  }
}

}  // namespace hvd::worker_runtime::engine
