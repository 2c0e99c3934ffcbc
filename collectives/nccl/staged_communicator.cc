#include "collectives/nccl/staged_communicator.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "collectives/nccl/device_stream.h"
#include "collectives/nccl/part_layout.h"
#include "collectives/nccl/shared_staging.h"
#include "collectives/nccl/staging_pipeline.h"
#include "collectives/piece_list.h"
#include "collectives/scale.h"

namespace hvd::collectives::nccl {
namespace {

// The size of a part, the same on all ranks. On a bus of 25 to 50 GB/s, 4 MiB take 80 to 170 us in
// each direction: ten times what it costs to start two copies, to wait for one, and for ranks in
// one host to meet. The first copy in and the last copy out overlap with nothing, which is 1/16 of
// the time for the 64 MiB of a fusion buffer. Three parts fit into a rank's share of a server's
// last cache, where the device's copies go, so that the host works on what is in the cache.
constexpr size_t kPartBytes = size_t{4} << 20;
// In a larger group, each rank's block of a ring has this size at least, as long as the memory does
// not grow beyond measure: the steps of the ring, whose number grows with the ranks, would take
// longer than the copies.
constexpr size_t kBytesPerRank = size_t{512} << 10;
constexpr size_t kMostPartBytes = size_t{32} << 20;

// From this size on an all-reduce goes through the memory that the ranks share, if they do: meeting
// twice takes less than copying a fourth of the data three times. More ranks would page-lock more
// memory than a machine may have to spare.
constexpr size_t kLeastShared = size_t{256} << 10;
constexpr int kMostSharing = 16;

size_t PartBytes(size_t ranks) {
  return std::clamp(ranks * kBytesPerRank, kPartBytes, kMostPartBytes);
}

size_t Sum(absl::Span<const size_t> numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), size_t{0});
}

char* At(void* data, size_t offset) { return static_cast<char*>(data) + offset; }
const char* At(const void* data, size_t offset) { return static_cast<const char*>(data) + offset; }

// A reduction of floats adds the ranks' values in an order that depends on the element's place in
// the operation of `host` and on its size, so the last bits of a sum may differ from those of one
// operation on all the data. They are the same on all ranks, as every element is in one operation,
// and in each run, as the parts depend on the sizes alone.
class StagedCommunicator : public DeviceCommunicator {
 public:
  StagedCommunicator(const CudaFunctions& cuda, std::unique_ptr<StagingPipeline> pipeline,
                     Communicator& host)
      : cuda_(cuda),
        pipeline_(std::move(pipeline)),
        host_(host),
        part_bytes_(PartBytes(host.size())) {}

  int rank() const override { return host_.rank(); }
  int size() const override { return host_.size(); }
  int device() const override { return stream().device(); }
  std::string ToString() const override { return absl::StrCat("staged ", host_.ToString()); }

  std::string Warning() const override {
    if (pipeline_->pinned().ok()) return "";
    return absl::StrCat("CUDA tensors go through pageable host memory, which is slower: ",
                        pipeline_->pinned().message(), " (rank ", rank(),
                        "; a memory limit of its container counts page-locked memory)");
  }

  absl::Status AllReduce(const void* in, void* out, size_t count, DataType type, ReduceOp op,
                         const CallOptions& options) override {
    return AllReduceScaled({Piece{in, out, count}}, type, op, 1.0, options);
  }

  // The pieces are packed, so that one operation of `host` reduces many of them.
  absl::Status AllReduceScaled(absl::Span<const Piece> pieces, DataType type, ReduceOp op,
                               double factor, const CallOptions& options) override {
    const PieceList list(pieces, SizeOf(type));
    // All ranks have the same count, so none takes part in a reduction of nothing.
    if (list.count() == 0) return absl::OkStatus();
    if (list.count() * SizeOf(type) >= kLeastShared) {
      ASSIGN_OR_RETURN(SharedStaging* const shared, Shared(options));
      if (shared != nullptr) {
        return shared->AllReduce(list, type, op, factor, stream(),
                                 [&] { return host_.Barrier(options); });
      }
    }
    const PartLayout layout({list.count()}, SizeOf(type), part_bytes_);
    return pipeline_->Run(
        layout.parts(),
        {[&](size_t part, char* host, DeviceStream& stream) {
           return CopyPieces(list, layout.Slices(part)[0],
                             [&](const char* in, char*, size_t offset, size_t bytes) {
                               return stream.CopyToHost(host + offset, in, bytes);
                             });
         },
         [&](size_t part, char* host) {
           return ReduceOnHost(host, layout.Slices(part)[0].count, type, op, factor, options);
         },
         [&](size_t part, char* host, DeviceStream& stream) {
           return CopyPieces(list, layout.Slices(part)[0],
                             [&](const char*, char* out, size_t offset, size_t bytes) {
                               return stream.CopyFromHost(out, host + offset, bytes);
                             });
         }});
  }

  absl::Status AllGather(const void* in, void* out, absl::Span<const size_t> byte_counts,
                         const CallOptions& options) override {
    const PartLayout layout(byte_counts, 1, part_bytes_);
    const size_t own = Sum(byte_counts.first(rank()));
    return pipeline_->Run(
        layout.parts(),
        {[&](size_t part, char* host, DeviceStream& stream) {
           const PartLayout::Slice slice = layout.Slices(part)[rank()];
           return stream.CopyToHost(host + slice.packed, At(in, slice.whole - own), slice.count);
         },
         [&](size_t part, char* host) {
           const std::vector<PartLayout::Slice> slices = layout.Slices(part);
           return host_.AllGather(host + slices[rank()].packed, host, CountsOf(slices), options);
         },
         [&](size_t part, char* host, DeviceStream& stream) -> absl::Status {
           for (const PartLayout::Slice& slice : layout.Slices(part)) {
             RETURN_IF_ERROR(
                 stream.CopyFromHost(At(out, slice.whole), host + slice.packed, slice.count));
           }
           return absl::OkStatus();
         }});
  }

  absl::Status Broadcast(void* buffer, size_t bytes, int root,
                         const CallOptions& options) override {
    const PartLayout layout({bytes}, 1, part_bytes_);
    return pipeline_->Run(layout.parts(),
                          {[&](size_t part, char* host, DeviceStream& stream) {
                             if (rank() != root) return absl::OkStatus();
                             const PartLayout::Slice slice = layout.Slices(part)[0];
                             return stream.CopyToHost(host, At(buffer, slice.whole), slice.count);
                           },
                           [&](size_t part, char* host) {
                             return host_.Broadcast(host, layout.Slices(part)[0].count, root,
                                                    options);
                           },
                           [&](size_t part, char* host, DeviceStream& stream) {
                             if (rank() == root) return absl::OkStatus();
                             const PartLayout::Slice slice = layout.Slices(part)[0];
                             return stream.CopyFromHost(At(buffer, slice.whole), host, slice.count);
                           }});
  }

  // Not in parts: a rank knows only its own blocks, and would have to ask for the number of parts.
  absl::Status AllToAll(const void* in, absl::Span<const size_t> send_bytes, void* out,
                        absl::Span<const size_t> receive_bytes,
                        const CallOptions& options) override {
    return Whole(in, Sum(send_bytes), out, Sum(receive_bytes), [&](const char* from, char* to) {
      return host_.AllToAll(from, send_bytes, to, receive_bytes, options);
    });
  }

  absl::Status ReduceScatter(const void* in, void* out, absl::Span<const size_t> counts,
                             DataType type, ReduceOp op, const CallOptions& options) override {
    return ReduceScatterScaled(in, out, counts, type, op, 1.0, options);
  }

  absl::Status ReduceScatterScaled(const void* in, void* out, absl::Span<const size_t> counts,
                                   DataType type, ReduceOp op, double factor,
                                   const CallOptions& options) override {
    const size_t unit = SizeOf(type);
    const PartLayout layout(counts, unit, part_bytes_);
    const size_t own = Sum(counts.first(rank()));
    return pipeline_->Run(
        layout.parts(),
        {[&](size_t part, char* host, DeviceStream& stream) -> absl::Status {
           for (const PartLayout::Slice& slice : layout.Slices(part)) {
             RETURN_IF_ERROR(stream.CopyToHost(host + slice.packed * unit,
                                               At(in, slice.whole * unit), slice.count * unit));
           }
           return absl::OkStatus();
         },
         [&](size_t part, char* host) -> absl::Status {
           const std::vector<PartLayout::Slice> slices = layout.Slices(part);
           char* const result = host + slices[rank()].packed * unit;
           RETURN_IF_ERROR(host_.ReduceScatter(host, result, CountsOf(slices), type, op, options));
           if (factor != 1.0) Scale(result, slices[rank()].count, type, factor);
           return absl::OkStatus();
         },
         [&](size_t part, char* host, DeviceStream& stream) {
           const PartLayout::Slice slice = layout.Slices(part)[rank()];
           return stream.CopyFromHost(At(out, (slice.whole - own) * unit),
                                      host + slice.packed * unit, slice.count * unit);
         }});
  }

  absl::Status SendReceive(int peer, const void* in, void* out, size_t bytes,
                           const CallOptions& options) override {
    return Whole(in, bytes, out, bytes, [&](const char* from, char* to) {
      return host_.SendReceive(peer, from, to, bytes, options);
    });
  }

  // No stream is involved: every operation above returns only when its copies are done.
  absl::Status Barrier(const CallOptions& options) override { return host_.Barrier(options); }
  void Abort(absl::string_view reason) override { host_.Abort(reason); }

  absl::Status WaitFor(void* event) override {
    const DeviceStream::ScopedDevice device(stream());
    return stream().WaitFor(static_cast<CudaEvent*>(event));
  }

  absl::StatusOr<void*> Reserve(size_t bytes) override {
    const DeviceStream::ScopedDevice device(stream());
    return stream().Scratch(DeviceStream::kCallers, bytes);
  }

  absl::StatusOr<std::shared_ptr<void>> Allocate(size_t bytes) override {
    if (bytes == 0) return nullptr;
    // Needs no ScopedDevice: DeviceMemory makes its own context current.
    return stream().memory().Take(bytes);
  }

  absl::Status CopyOnDevice(void* to, const void* from, size_t bytes,
                            const CallOptions& options) override {
    return Do([&] { return stream().CopyOnDevice(to, from, bytes); });
  }
  absl::Status CopyToHost(void* to_host, const void* from, size_t bytes,
                          const CallOptions& options) override {
    return Do([&] { return stream().CopyToHost(to_host, from, bytes); });
  }
  absl::Status CopyFromHost(void* to, const void* from_host, size_t bytes,
                            const CallOptions& options) override {
    return Do([&] { return stream().CopyFromHost(to, from_host, bytes); });
  }

 private:
  DeviceStream& stream() const { return pipeline_->stream(); }

  // Returns nullptr if the ranks share no memory, or if a rank can't lock it. All ranks call it at
  // the same operation, and agree at the first one.
  absl::StatusOr<SharedStaging*> Shared(const CallOptions& options) {
    const std::optional<SharedMemory> memory = host_.shared_memory();
    if (!memory.has_value() || size() == 1 || size() > kMostSharing) return nullptr;
    if (!has_agreed_) {
      auto own = SharedStaging::Create(cuda_, device(), rank(), size(), *memory);
      uint8_t can = own.ok() ? 1 : 0;
      RETURN_IF_ERROR(host_.AllReduce(&can, &can, 1, DataType::kUint8, ReduceOp::kMin, options));
      if (can != 0) shared_ = *std::move(own);
      has_agreed_ = true;
    }
    return shared_.get();
  }

  // Runs `work` on the stream and waits for it.
  absl::Status Do(absl::FunctionRef<absl::Status()> work) {
    const DeviceStream::ScopedDevice device(stream());
    absl::Status status = work();
    // Also after an error: a copy that was started before it may still access the memory.
    status.Update(stream().Synchronize());
    return status;
  }

  // Calls copy(in, out, offset in the part, bytes) for what is in the slice of each piece.
  static absl::Status CopyPieces(
      const PieceList& list, const PartLayout::Slice& slice,
      absl::FunctionRef<absl::Status(const char*, char*, size_t, size_t)> copy) {
    absl::Status status;
    list.ForEach(slice.whole, slice.whole + slice.count,
                 [&](const char* in, char* out, size_t offset, size_t count) {
                   if (status.ok()) status = copy(in, out, offset, count * list.element_bytes());
                 });
    return status;
  }

  absl::Status ReduceOnHost(void* data, size_t count, DataType type, ReduceOp op, double factor,
                            const CallOptions& options) {
    if (factor == 1.0) return host_.AllReduce(data, data, count, type, op, options);
    const auto scale = [&](void* result, size_t results) { Scale(result, results, type, factor); };
    if (host_.TakesPieces()) {
      // Saves a pass over the memory, and each rank scales its share only.
      return host_.AllReducePieces({Piece{data, data, count}}, type, op, scale, options);
    }
    RETURN_IF_ERROR(host_.AllReduce(data, data, count, type, op, options));
    scale(data, count);
    return absl::OkStatus();
  }

  // Copies the input to the host, calls operation(from, to) there, and copies its result back.
  absl::Status Whole(const void* in, size_t in_bytes, void* out, size_t out_bytes,
                     absl::FunctionRef<absl::Status(const char* from, char* to)> operation) {
    char* const from = Memory(in_bytes + out_bytes);
    char* const to = from + in_bytes;
    RETURN_IF_ERROR(Do([&] { return stream().CopyToHost(from, in, in_bytes); }));
    RETURN_IF_ERROR(operation(from, to));
    return Do([&] { return stream().CopyFromHost(out, to, out_bytes); });
  }

  // The pipeline's memory, or pageable memory if that is too small: page-locked memory is bounded.
  // Both are reused between calls: page faults in fresh memory would cost more than most
  // operations.
  char* Memory(size_t bytes) {
    if (bytes <= pipeline_->memory_bytes()) return pipeline_->memory();
    if (large_.size() < bytes) large_.resize(bytes);
    return large_.data();
  }

  const CudaFunctions& cuda_;
  const std::unique_ptr<StagingPipeline> pipeline_;
  std::unique_ptr<SharedStaging> shared_;
  bool has_agreed_ = false;  // whether shared_ can be used
  Communicator& host_;
  const size_t part_bytes_;
  std::vector<char> large_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceCommunicator>> MakeStagedCommunicator(
    const CudaFunctions& cuda, int device, Communicator& host) {
  const size_t ranks = host.size();
  ASSIGN_OR_RETURN(
      std::unique_ptr<StagingPipeline> pipeline,
      StagingPipeline::Create(cuda, device, PartLayout::MostBytes(PartBytes(ranks), ranks)));
  return std::make_unique<StagedCommunicator>(cuda, std::move(pipeline), host);
}

}  // namespace hvd::collectives::nccl
