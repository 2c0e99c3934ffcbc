#include "collectives/nccl/staging_pipeline.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"

namespace hvd::collectives::nccl {

absl::StatusOr<std::unique_ptr<StagingPipeline>> StagingPipeline::Create(const CudaFunctions& cuda,
                                                                         int device,
                                                                         size_t slot_bytes) {
  Streams streams;
  for (std::unique_ptr<DeviceStream>& stream : streams) {
    ASSIGN_OR_RETURN(stream, DeviceStream::Create(cuda, device));
  }
  return std::unique_ptr<StagingPipeline>(new StagingPipeline(std::move(streams), slot_bytes));
}

absl::Status StagingPipeline::Run(size_t parts, const Steps& steps) {
  const DeviceStream::ScopedDevice device(stream());
  absl::Status status = RunParts(parts, steps);
  // Also after an error: the caller may free its memory when the call returns.
  status.Update(AwaitCopies(parts));
  return status;
}

absl::Status StagingPipeline::RunParts(size_t parts, const Steps& steps) {
  // The first slot's stream is the one that waits for the caller's events.
  for (size_t slot = 1; slot < std::min(parts, kSlots); ++slot) {
    RETURN_IF_ERROR(streams_[slot]->Follow(stream()));
  }
  const auto copy_in = [&](size_t part) {
    return part < parts ? steps.copy_in(part, MemoryOf(part), StreamOf(part)) : absl::OkStatus();
  };
  for (size_t part = 0; part < kSlots; ++part) RETURN_IF_ERROR(copy_in(part));
  for (size_t part = 0; part < parts; ++part) {
    // The last work on this stream is the copy of this part to the host.
    RETURN_IF_ERROR(StreamOf(part).Synchronize());
    RETURN_IF_ERROR(steps.operate(part, MemoryOf(part)));
    RETURN_IF_ERROR(steps.copy_out(part, MemoryOf(part), StreamOf(part)));
    RETURN_IF_ERROR(copy_in(part + kSlots));
  }
  return absl::OkStatus();
}

absl::Status StagingPipeline::AwaitCopies(size_t parts) {
  absl::Status status;
  // The oldest copies belong to any slot, so all are awaited, after an error as well.
  for (size_t slot = 0; slot < std::min(parts, kSlots); ++slot) {
    status.Update(streams_[slot]->Synchronize());
  }
  return status;
}

}  // namespace hvd::collectives::nccl
