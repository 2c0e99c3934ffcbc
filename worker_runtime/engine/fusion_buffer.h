// The fusion buffer: scratch memory for fused tensors. It grows on demand and never shrinks.
#ifndef WORKER_RUNTIME_ENGINE_FUSION_BUFFER_H_
#define WORKER_RUNTIME_ENGINE_FUSION_BUFFER_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/os/large_memory.h"
#include "collectives/communicator.h"

namespace hvd::worker_runtime::engine {

// Not thread-safe.
class FusionBuffer {
 public:
  // Returns at least `bytes` of uninitialised memory, aligned to a cache line, valid until the next
  // call.
  // Errors:
  //   - ResourceExhausted: there is not enough memory.
  absl::StatusOr<char*> Reserve(size_t bytes);

  // Copies consecutive bytes from the start of the buffer to the pieces in turn. A piece without
  // an address is skipped, with its bytes.
  void Unpack(absl::Span<const collectives::Stretch> pieces) const;

 private:
  os::LargeMemory data_;
  size_t capacity_ = 0;
};

}  // namespace hvd::worker_runtime::engine

#endif  // WORKER_RUNTIME_ENGINE_FUSION_BUFFER_H_
