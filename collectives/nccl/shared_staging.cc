#include "collectives/nccl/shared_staging.h"

#include <utility>

#include "absl/container/inlined_vector.h"
#include "base/status_macros.h"
#include "collectives/reduce.h"
#include "collectives/scale.h"

namespace hvd::collectives::nccl {
namespace {

// How many parts before it is reduced a part's copy to the host starts, and how many after that its
// copy to the device must be done. See the header.
constexpr size_t kAhead = 2;
constexpr size_t kBehind = 3;

// Elements at the front of a part of `count` that the ranks below `rank` reduce. Shares begin at
// multiples of cache lines, whatever the element type is.
size_t ShareBegin(size_t count, int rank, int ranks) {
  constexpr size_t kAlignment = 64;
  return rank == ranks ? count : count * rank / ranks / kAlignment * kAlignment;
}

}  // namespace

struct SharedStaging::Operation {
  const PieceList& pieces;
  const PartLayout layout;
  const DataType type;
  const ReduceOp op;
  const double factor;
  const absl::FunctionRef<absl::Status()> meet;
};

absl::StatusOr<std::unique_ptr<SharedStaging>> SharedStaging::Create(const CudaFunctions& cuda,
                                                                     int device, int rank,
                                                                     int ranks,
                                                                     const SharedMemory& memory) {
  static_assert(kSlots == kAhead + kBehind);
  Streams streams;
  for (std::unique_ptr<DeviceStream>& stream : streams) {
    ASSIGN_OR_RETURN(stream, DeviceStream::Create(cuda, device));
  }
  std::unique_ptr<SharedStaging> staging(
      new SharedStaging(std::move(streams), rank, ranks, memory));
  DeviceStream& any = *staging->streams_[0];
  const DeviceStream::ScopedDevice scope(any);
  RETURN_IF_ERROR(any.LockHost(memory.data, memory.bytes_per_rank * ranks));
  staging->is_locked_ = true;
  return staging;
}

SharedStaging::~SharedStaging() {
  if (!is_locked_) return;
  const DeviceStream::ScopedDevice device(*streams_[0]);
  streams_[0]->UnlockHost(memory_.data);
}

char* SharedStaging::MemoryOf(int rank, size_t part) const {
  return memory_.data + rank * memory_.bytes_per_rank + part % kSlots * PartBytes();
}

size_t SharedStaging::PartBytes() const { return memory_.bytes_per_rank / kSlots; }

absl::Status SharedStaging::AllReduce(const PieceList& pieces, DataType type, ReduceOp op,
                                      double factor, DeviceStream& before,
                                      absl::FunctionRef<absl::Status()> meet) {
  const DeviceStream::ScopedDevice device(before);
  // MostBytes of this size is PartBytes.
  const size_t part_bytes = 2 * PartBytes() - PartLayout::MostBytes(PartBytes(), 1);
  const PartLayout layout({pieces.count()}, pieces.element_bytes(), part_bytes);
  absl::Status status = RunParts({pieces, layout, type, op, factor, meet}, before);
  // Also after an error: the caller may free its memory when the call returns.
  status.Update(AwaitCopies());
  RETURN_IF_ERROR(status);
  // The next call overwrites this rank's memory, of which the other devices must have their copies.
  return meet();
}

absl::Status SharedStaging::RunParts(const Operation& operation, DeviceStream& before) {
  const size_t parts = operation.layout.parts();
  for (const std::unique_ptr<DeviceStream>& stream : streams_) {
    RETURN_IF_ERROR(stream->Follow(before));
  }
  for (size_t part = 0; part < kAhead; ++part) RETURN_IF_ERROR(CopyIn(operation, part));
  for (size_t part = 0; part <= parts; ++part) {
    // The last work on these streams is the copy of the one to the host, of the other to the
    // device.
    if (part < parts) RETURN_IF_ERROR(StreamOf(part).Synchronize());
    if (part >= kBehind) RETURN_IF_ERROR(StreamOf(part - kBehind).Synchronize());
    RETURN_IF_ERROR(operation.meet());
    if (part > 0) RETURN_IF_ERROR(CopyOut(operation, part - 1));
    RETURN_IF_ERROR(CopyIn(operation, part + kAhead));
    if (part < parts) Reduce(operation, part);
  }
  return absl::OkStatus();
}

absl::Status SharedStaging::CopyIn(const Operation& operation, size_t part) {
  if (part >= operation.layout.parts()) return absl::OkStatus();
  const PartLayout::Slice slice = operation.layout.Slices(part)[0];
  char* const host = MemoryOf(rank_, part);
  absl::Status status;
  operation.pieces.ForEach(slice.whole, slice.whole + slice.count,
                           [&](const char* in, char*, size_t offset, size_t count) {
                             if (!status.ok()) return;
                             status = StreamOf(part).CopyToHost(
                                 host + offset, in, count * operation.pieces.element_bytes());
                           });
  return status;
}

absl::Status SharedStaging::CopyOut(const Operation& operation, size_t part) {
  const PartLayout::Slice slice = operation.layout.Slices(part)[0];
  const size_t unit = operation.pieces.element_bytes();
  absl::Status status;
  for (int owner = 0; owner < ranks_; ++owner) {
    const size_t begin = ShareBegin(slice.count, owner, ranks_);
    const char* const host = MemoryOf(owner, part) + begin * unit;
    operation.pieces.ForEach(
        slice.whole + begin, slice.whole + ShareBegin(slice.count, owner + 1, ranks_),
        [&](const char*, char* out, size_t offset, size_t count) {
          if (!status.ok()) return;
          status = StreamOf(part).CopyFromHost(out, host + offset, count * unit);
        });
  }
  return status;
}

void SharedStaging::Reduce(const Operation& operation, size_t part) {
  const size_t whole = operation.layout.Slices(part)[0].count;
  const size_t begin = ShareBegin(whole, rank_, ranks_);
  const size_t count = ShareBegin(whole, rank_ + 1, ranks_) - begin;
  if (count == 0) return;
  const size_t offset = begin * operation.pieces.element_bytes();
  char* const own = MemoryOf(rank_, part) + offset;
  absl::InlinedVector<const void*, 8> sources = {own};  // the first, since only that may be `out`
  for (int peer = 0; peer < ranks_; ++peer) {
    if (peer != rank_) sources.push_back(MemoryOf(peer, part) + offset);
  }
  Reducer(operation.type, operation.op)(own, sources, count);
  if (operation.factor != 1.0) Scale(own, count, operation.type, operation.factor);
}

absl::Status SharedStaging::AwaitCopies() {
  absl::Status status;
  for (const std::unique_ptr<DeviceStream>& stream : streams_) {
    status.Update(stream->Synchronize());
  }
  return status;
}

}  // namespace hvd::collectives::nccl
