// The fusion buffer: scratch memory that grows on demand and never shrinks.
#ifndef WORKER_RUNTIME_ENGINE_FUSION_BUFFER_H_
#define WORKER_RUNTIME_ENGINE_FUSION_BUFFER_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/os/large_memory.h"
#include "collectives/communicator.h"

namespace hvd::worker_runtime::engine {

// Not thread-safe. Independent of what is packed.
class FusionBuffer {
 public:
  // At least `bytes`, with any contents, aligned to a cache line; valid until the next call.
  // Errors:
  //   - ResourceExhausted: there is no memory for it.
  absl::StatusOr<char*> Reserve(size_t bytes);

  // Copies the buffer's first bytes, without gaps, out to those pieces that have an address.
  void Unpack(absl::Span<const collectives::Stretch> pieces) const;

 private:
  os::LargeMemory data_;
  size_t capacity_ = 0;
};

}  // namespace hvd::worker_runtime::engine

#endif  // WORKER_RUNTIME_ENGINE_FUSION_BUFFER_H_
