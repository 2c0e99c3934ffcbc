// The pipeline of an operation on the host whose data comes from a device and returns there.
#ifndef COLLECTIVES_NCCL_STAGING_PIPELINE_H_
#define COLLECTIVES_NCCL_STAGING_PIPELINE_H_

#include <array>
#include <cstddef>
#include <memory>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "collectives/nccl/device_stream.h"
#include "collectives/nccl/pinned_memory.h"

namespace hvd::collectives::nccl {

// Parts go through a few slots in turn. A slot is host memory with a stream. While the host works
// on part k, the device copies the parts after k to the host and those before k back, on the
// streams of their slots:
//
//   slot 0   in 0 | host 0 | out 0 | in 3  |        | host 3 | ...
//   slot 1   in 1          | host 1 | out 1 | in 4
//   slot 2     in 2                 | host 2 | out 2
//
// A slot's work is in the order of its stream, so no event is needed between a part's copy to the
// device and the next part's copy into the same memory. One thread at a time may use a pipeline.
class StagingPipeline {
 public:
  // Each of these starts its copies on `stream`, between device memory and the part's memory
  // `host`, or works on that memory.
  using Copy = absl::FunctionRef<absl::Status(size_t part, char* host, DeviceStream& stream)>;
  using Operation = absl::FunctionRef<absl::Status(size_t part, char* host)>;
  struct Steps {
    Copy copy_in;
    Operation operate;
    Copy copy_out;
  };

  // `cuda` must outlive the pipeline. `slot_bytes` is the size of the largest part.
  // Errors: those of DeviceStream::Create.
  static absl::StatusOr<std::unique_ptr<StagingPipeline>> Create(const CudaFunctions& cuda,
                                                                 int device, size_t slot_bytes);

  // The stream that events and the caller's own copies go to. Run's copies are done after its work.
  DeviceStream& stream() { return *streams_[0]; }
  // All slots together, for another use between two calls of Run.
  char* memory() const { return memory_.data(); }
  size_t memory_bytes() const { return kSlots * slot_bytes_; }
  // Why the memory is not page-locked; OK: it is.
  const absl::Status& pinned() const { return memory_.status(); }

  // Takes `parts` parts through the steps, in order. When it returns, no copy is pending, even
  // after an error. A single part uses the first slot alone.
  // Errors: the first one of a step or of the driver; no later part is operated on.
  absl::Status Run(size_t parts, const Steps& steps);

 private:
  // One is copied to the host, one is operated on, one is copied back. A fourth would only take
  // memory: the operations are in one thread, and each direction of the bus carries one copy at a
  // time.
  static constexpr size_t kSlots = 3;
  using Streams = std::array<std::unique_ptr<DeviceStream>, kSlots>;

  StagingPipeline(Streams streams, size_t slot_bytes)
      : streams_(std::move(streams)),
        slot_bytes_(slot_bytes),
        memory_(*streams_[0], kSlots * slot_bytes) {}

  DeviceStream& StreamOf(size_t part) { return *streams_[part % kSlots]; }
  char* MemoryOf(size_t part) const { return memory_.data() + part % kSlots * slot_bytes_; }
  absl::Status RunParts(size_t parts, const Steps& steps);
  absl::Status AwaitCopies(size_t parts);

  const Streams streams_;
  const size_t slot_bytes_;
  const PinnedMemory memory_;  // after the streams, which it uses
};

}  // namespace hvd::collectives::nccl

#endif  // COLLECTIVES_NCCL_STAGING_PIPELINE_H_
