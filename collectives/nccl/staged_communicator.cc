#include "collectives/nccl/staged_communicator.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "collectives/scale.h"

namespace hvd::collectives::nccl {
namespace {

size_t Sum(absl::Span<const size_t> numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), size_t{0});
}

class StagedCommunicator : public DeviceCommunicator {
 public:
  StagedCommunicator(std::unique_ptr<DeviceStream> stream, Communicator& host)
      : stream_(std::move(stream)), host_(host) {}

  int rank() const override { return host_.rank(); }
  int size() const override { return host_.size(); }
  int device() const override { return stream_->device(); }
  std::string ToString() const override { return absl::StrCat("staged ", host_.ToString()); }

  absl::Status AllReduce(const void* in, void* out, size_t count, DataType type, ReduceOp op,
                         const CallOptions& options) override {
    return AllReduceScaled({Piece{in, out, count}}, type, op, 1.0, options);
  }

  absl::Status AllReduceScaled(absl::Span<const Piece> pieces, DataType type, ReduceOp op,
                               double factor, const CallOptions& options) override {
    const size_t unit = SizeOf(type);
    // The pieces are packed into one host buffer, so that one operation of `host_` reduces them
    // all.
    size_t count = 0;
    for (const Piece& piece : pieces) count += piece.count;
    char* const packed = In(count * unit);
    RETURN_IF_ERROR(CopyPieces(
        [&](const Piece& piece, size_t offset) {
          return stream_->CopyToHost(packed + offset, piece.in, piece.count * unit);
        },
        pieces, unit));
    // All ranks have the same count, so none takes part in a reduction of nothing.
    if (count == 0) return absl::OkStatus();
    RETURN_IF_ERROR(host_.AllReduce(packed, packed, count, type, op, options));
    if (factor != 1.0) Scale(packed, count, type, factor);
    return CopyPieces(
        [&](const Piece& piece, size_t offset) {
          return stream_->CopyFromHost(piece.out, packed + offset, piece.count * unit);
        },
        pieces, unit);
  }

  absl::Status AllGather(const void* in, void* out, absl::Span<const size_t> byte_counts,
                         const CallOptions& options) override {
    const size_t own = byte_counts[rank()], all = Sum(byte_counts);
    return Staged(in, own, out, all, [&](const char* from, char* to) {
      return host_.AllGather(from, to, byte_counts, options);
    });
  }

  absl::Status Broadcast(void* buffer, size_t bytes, int root,
                         const CallOptions& options) override {
    const size_t given = rank() == root ? bytes : 0;  // other ranks have no input to copy
    return Staged(buffer, given, buffer, bytes, [&](const char* from, char* to) {
      // The host's broadcast works in place, and the result is copied back from `to`.
      if (given > 0) std::copy(from, from + given, to);
      return host_.Broadcast(to, bytes, root, options);
    });
  }

  absl::Status AllToAll(const void* in, absl::Span<const size_t> send_bytes, void* out,
                        absl::Span<const size_t> receive_bytes,
                        const CallOptions& options) override {
    return Staged(in, Sum(send_bytes), out, Sum(receive_bytes), [&](const char* from, char* to) {
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
    const size_t unit = SizeOf(type), own = counts[rank()];
    return Staged(in, Sum(counts) * unit, out, own * unit,
                  [&](const char* from, char* to) -> absl::Status {
                    RETURN_IF_ERROR(host_.ReduceScatter(from, to, counts, type, op, options));
                    if (factor != 1.0) Scale(to, own, type, factor);
                    return absl::OkStatus();
                  });
  }

  absl::Status SendReceive(int peer, const void* in, void* out, size_t bytes,
                           const CallOptions& options) override {
    return Staged(in, bytes, out, bytes, [&](const char* from, char* to) {
      return host_.SendReceive(peer, from, to, bytes, options);
    });
  }

  // No stream is involved: every operation above returns only when its copies are done.
  absl::Status Barrier(const CallOptions& options) override { return host_.Barrier(options); }
  void Abort(absl::string_view reason) override { host_.Abort(reason); }

  absl::Status WaitFor(void* event) override {
    const DeviceStream::ScopedDevice device(*stream_);
    return stream_->WaitFor(static_cast<CudaEvent*>(event));
  }

  absl::StatusOr<void*> Reserve(size_t bytes) override {
    const DeviceStream::ScopedDevice device(*stream_);
    return stream_->Scratch(DeviceStream::kCallers, bytes);
  }

  absl::StatusOr<std::shared_ptr<void>> Allocate(size_t bytes) override {
    if (bytes == 0) return nullptr;
    // Needs no ScopedDevice: DeviceMemory makes its own context current.
    return stream_->memory().Take(bytes);
  }

  absl::Status CopyOnDevice(void* to, const void* from, size_t bytes,
                            const CallOptions& options) override {
    return Do([&] { return stream_->CopyOnDevice(to, from, bytes); });
  }
  absl::Status CopyToHost(void* to_host, const void* from, size_t bytes,
                          const CallOptions& options) override {
    return Do([&] { return stream_->CopyToHost(to_host, from, bytes); });
  }
  absl::Status CopyFromHost(void* to, const void* from_host, size_t bytes,
                            const CallOptions& options) override {
    return Do([&] { return stream_->CopyFromHost(to, from_host, bytes); });
  }

 private:
  // Memory that is reused between calls: page faults in fresh memory would cost more than most
  // operations.
  static char* Grown(std::vector<char>& memory, size_t bytes) {
    if (memory.size() < bytes) memory.resize(bytes);
    return memory.data();
  }
  char* In(size_t bytes) { return Grown(in_, bytes); }
  char* Out(size_t bytes) { return Grown(out_, bytes); }

  // Runs `work` on the stream and waits for it.
  absl::Status Do(absl::FunctionRef<absl::Status()> work) {
    const DeviceStream::ScopedDevice device(*stream_);
    RETURN_IF_ERROR(work());
    // The host's communicator reads the buffer next, and an asynchronous copy may still write to
    // it.
    return stream_->Synchronize();
  }

  absl::Status CopyPieces(absl::FunctionRef<absl::Status(const Piece&, size_t offset)> copy,
                          absl::Span<const Piece> pieces, size_t unit) {
    return Do([&]() -> absl::Status {
      size_t offset = 0;
      for (const Piece& piece : pieces) {
        RETURN_IF_ERROR(copy(piece, offset));
        offset += piece.count * unit;
      }
      return absl::OkStatus();
    });
  }

  // Copies the input to the host, calls operation(from, to) there, and copies its result back.
  absl::Status Staged(const void* in, size_t in_bytes, void* out, size_t out_bytes,
                      absl::FunctionRef<absl::Status(const char* from, char* to)> operation) {
    char* const from = In(in_bytes);
    char* const to = Out(out_bytes);
    RETURN_IF_ERROR(Do([&] { return stream_->CopyToHost(from, in, in_bytes); }));
    RETURN_IF_ERROR(operation(from, to));
    return Do([&] { return stream_->CopyFromHost(out, to, out_bytes); });
  }

  const std::unique_ptr<DeviceStream> stream_;
  Communicator& host_;
  std::vector<char> in_, out_;
};

}  // namespace

std::unique_ptr<DeviceCommunicator> MakeStagedCommunicator(std::unique_ptr<DeviceStream> stream,
                                                           Communicator& host) {
  return std::make_unique<StagedCommunicator>(std::move(stream), host);
}

}  // namespace hvd::collectives::nccl
