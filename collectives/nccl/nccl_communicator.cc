#include "collectives/nccl/nccl_communicator.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "collectives/argument_checks.h"
#include "collectives/rank_text.h"
#include "collectives/reduce.h"

namespace hvd::collectives::nccl {
namespace {

absl::Status CheckFactor(DataType type, ReduceOp op, double factor) {
  // NCCL multiplies within a sum only. Scaling integers would round each rank's value before the
  // sum.
  if (factor == 1.0 || (op == ReduceOp::kSum && IsFloating(type))) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("NCCL can't scale a ", NameOf(op), " of ", NameOf(type)));
}

const char* At(const void* base, size_t offset) { return static_cast<const char*>(base) + offset; }
char* At(void* base, size_t offset) { return static_cast<char*>(base) + offset; }

size_t Before(absl::Span<const size_t> counts, int rank) {
  return std::accumulate(counts.begin(), counts.begin() + rank, size_t{0});
}

bool AllEqual(absl::Span<const size_t> counts) {
  return std::all_of(counts.begin(), counts.end(), [&](size_t c) { return c == counts[0]; });
}

// The sizes of `size` blocks of `count` elements in total that differ by one at most.
std::vector<size_t> SplitEvenly(size_t count, int size) {
  std::vector<size_t> counts(size, count / size);
  for (size_t r = 0; r < count % size; ++r) ++counts[r];
  return counts;
}

std::vector<size_t> Times(absl::Span<const size_t> counts, size_t factor) {
  std::vector<size_t> result(counts.begin(), counts.end());
  for (size_t& count : result) count *= factor;
  return result;
}

// Calls f(rank, offset, count) for each rank until it fails. Empty blocks are left out; that is
// consistent because both ends of a transfer know its size. Like the groups below it goes on after
// kInProgress: the rest of the group would be missing otherwise, and nobody would notice.
template <typename F>
NcclResult ForEachBlock(absl::Span<const size_t> counts, F&& f) {
  size_t offset = 0;
  for (size_t r = 0; r < counts.size(); ++r) {
    if (counts[r] > 0) {
      const NcclResult result = f(static_cast<int>(r), offset, counts[r]);
      if (IsError(result)) return result;
    }
    offset += counts[r];
  }
  return NcclResult::kSuccess;
}

}  // namespace

NcclCommunicator::NcclCommunicator(const GpuLibraries& libraries, const GroupInfo& group,
                                   int device, std::shared_ptr<GuardedComm> comm)
    : nccl_(libraries.nccl),
      rank_(group.rank),
      size_(group.size),
      device_(device),
      epoch_(group.epoch),
      comm_(std::move(comm)) {}

NcclCommunicator::~NcclCommunicator() { comm_->Close(); }

std::string NcclCommunicator::ToString() const { return RankText("nccl", rank_, size_, epoch_); }

absl::Status NcclCommunicator::Run(absl::string_view operation, const CallOptions& options,
                                   absl::FunctionRef<absl::Status()> enqueue) {
  // Before anything can fail, so that the number stays equal on all ranks whatever happens on this
  // one.
  ++calls_;
  return comm_->Run(options.timeout, enqueue, [&](const absl::Status& status) {
    return absl::Status(status.code(), absl::StrCat(operation, " (call ", calls_, "; ", ToString(),
                                                    "): ", status.message()));
  });
}

absl::Status NcclCommunicator::Copy(absl::string_view operation, const CallOptions& options,
                                    absl::FunctionRef<absl::Status(DeviceStream&)> copy) {
  return comm_->Run(
      options.timeout, [&] { return comm_->OnStream(copy); },
      [&](const absl::Status& status) {
        return absl::Status(status.code(),
                            absl::StrCat(operation, " (", ToString(), "): ", status.message()));
      });
}

absl::Status NcclCommunicator::AllReduce(const void* in, void* out, size_t count, DataType type,
                                         ReduceOp op, const CallOptions& options) {
  return AllReduceScaled({Piece{in, out, count}}, type, op, 1.0, options);
}

absl::Status NcclCommunicator::AllReduceScaled(absl::Span<const Piece> pieces, DataType type,
                                               ReduceOp op, double factor,
                                               const CallOptions& options) {
  RETURN_IF_ERROR(CheckFactor(type, op, factor));
  return Run("allreduce", options, [&]() -> absl::Status {
    const std::optional<NcclReduction> reduction = ToNccl(type, op);
    if (!reduction.has_value()) {
      for (const Piece& piece : pieces) RETURN_IF_ERROR(AllReduceOnHost(piece, type, op));
      return absl::OkStatus();
    }
    return WithFactor(type, *reduction, factor, [&](NcclOp nccl_op) {
      return comm_->Group([&](NcclComm* comm, CudaStream* stream) {
        for (const Piece& piece : pieces) {
          if (piece.count == 0) continue;
          const NcclResult result = nccl_.all_reduce(piece.in, piece.out, piece.count,
                                                     reduction->type, nccl_op, comm, stream);
          if (IsError(result)) return result;
        }
        return NcclResult::kSuccess;
      });
    });
  });
}

absl::Status NcclCommunicator::WithFactor(DataType type, const NcclReduction& reduction,
                                          double factor,
                                          absl::FunctionRef<absl::Status(NcclOp)> use) {
  if (factor == 1.0) return use(reduction.op);
  NcclOp scaled = reduction.op;
  NcclFactor value = ToNcclFactor(type, factor);
  RETURN_IF_ERROR(comm_->Call("making a scaled sum", [&](NcclComm* comm) {
    return nccl_.red_op_create_pre_mul_sum(&scaled, value.bytes, reduction.type, kNcclScalarOnHost,
                                           comm);
  }));
  // After an error the operator is not dropped: the communicator is about to be aborted, which
  // frees it.
  RETURN_IF_ERROR(use(scaled));
  return comm_->Call("dropping a scaled sum",
                     [&](NcclComm* comm) { return nccl_.red_op_destroy(scaled, comm); });
}

absl::Status NcclCommunicator::AllGather(const void* in, void* out,
                                         absl::Span<const size_t> byte_counts,
                                         const CallOptions& options) {
  return Run("allgather", options, [&]() -> absl::Status {
    RETURN_IF_ERROR(CheckCounts(byte_counts, size_));
    return GatherBlocks(in, out, byte_counts);
  });
}

absl::Status NcclCommunicator::GatherBlocks(const void* in, void* out,
                                            absl::Span<const size_t> byte_counts) {
  return comm_->Group([&](NcclComm* comm, CudaStream* stream) {
    // NCCL's all-gather requires equal sizes; otherwise each rank broadcasts its block.
    if (byte_counts[0] > 0 && AllEqual(byte_counts)) {
      return nccl_.all_gather(in, out, byte_counts[0], NcclType::kUint8, comm, stream);
    }
    return ForEachBlock(byte_counts, [&](int root, size_t offset, size_t bytes) {
      return nccl_.broadcast(root == rank_ ? in : At(out, offset), At(out, offset), bytes,
                             NcclType::kUint8, root, comm, stream);
    });
  });
}

absl::Status NcclCommunicator::Broadcast(void* buffer, size_t bytes, int root,
                                         const CallOptions& options) {
  return Run("broadcast", options, [&]() -> absl::Status {
    RETURN_IF_ERROR(CheckIsRank(root, size_));
    // All ranks know the size, so all leave the call out.
    if (bytes == 0) return absl::OkStatus();
    return comm_->Group([&](NcclComm* comm, CudaStream* stream) {
      return nccl_.broadcast(buffer, buffer, bytes, NcclType::kUint8, root, comm, stream);
    });
  });
}

absl::Status NcclCommunicator::AllToAll(const void* in, absl::Span<const size_t> send_bytes,
                                        void* out, absl::Span<const size_t> receive_bytes,
                                        const CallOptions& options) {
  return Run("alltoall", options, [&]() -> absl::Status {
    RETURN_IF_ERROR(CheckCounts(send_bytes, size_));
    RETURN_IF_ERROR(CheckCounts(receive_bytes, size_));
    return ExchangeBlocks(in, send_bytes, out, receive_bytes);
  });
}

absl::Status NcclCommunicator::ExchangeBlocks(const void* in, absl::Span<const size_t> send_bytes,
                                              void* out, absl::Span<const size_t> receive_bytes) {
  return comm_->Group([&](NcclComm* comm, CudaStream* stream) {
    // All sends and receives are in one group, in which NCCL starts them together. One after the
    // other, ranks that all send first would wait for each other.
    const NcclResult sent = ForEachBlock(send_bytes, [&](int peer, size_t offset, size_t bytes) {
      return nccl_.send(At(in, offset), bytes, NcclType::kUint8, peer, comm, stream);
    });
    if (IsError(sent)) return sent;
    return ForEachBlock(receive_bytes, [&](int peer, size_t offset, size_t bytes) {
      return nccl_.recv(At(out, offset), bytes, NcclType::kUint8, peer, comm, stream);
    });
  });
}

absl::Status NcclCommunicator::ReduceScatter(const void* in, void* out,
                                             absl::Span<const size_t> counts, DataType type,
                                             ReduceOp op, const CallOptions& options) {
  return ReduceScatterScaled(in, out, counts, type, op, 1.0, options);
}

absl::Status NcclCommunicator::ReduceScatterScaled(const void* in, void* out,
                                                   absl::Span<const size_t> counts, DataType type,
                                                   ReduceOp op, double factor,
                                                   const CallOptions& options) {
  RETURN_IF_ERROR(CheckFactor(type, op, factor));
  return Run("reducescatter", options, [&]() -> absl::Status {
    RETURN_IF_ERROR(CheckCounts(counts, size_));
    const std::optional<NcclReduction> reduction = ToNccl(type, op);
    if (!reduction.has_value()) return ReduceScatterOnHost(in, out, counts, type, op);
    return WithFactor(type, *reduction, factor, [&](NcclOp nccl_op) {
      return comm_->Group([&](NcclComm* comm, CudaStream* stream) {
        // NCCL's reduce-scatter requires equal sizes; otherwise each block is reduced to its rank.
        if (counts[0] > 0 && AllEqual(counts)) {
          return nccl_.reduce_scatter(in, out, counts[0], reduction->type, nccl_op, comm, stream);
        }
        return ForEachBlock(counts, [&](int root, size_t offset, size_t count) {
          return nccl_.reduce(At(in, offset * SizeOf(type)), out, count, reduction->type, nccl_op,
                              root, comm, stream);
        });
      });
    });
  });
}

absl::Status NcclCommunicator::SendReceive(int peer, const void* in, void* out, size_t bytes,
                                           const CallOptions& options) {
  return Run("send-receive", options, [&]() -> absl::Status {
    RETURN_IF_ERROR(CheckIsRank(peer, size_));
    if (peer == rank_) return absl::InternalError("a rank can't exchange with itself");
    if (bytes == 0) return absl::OkStatus();
    return comm_->Group([&](NcclComm* comm, CudaStream* stream) {
      // In one group, as in ExchangeBlocks: both ranks send first.
      const NcclResult sent = nccl_.send(in, bytes, NcclType::kUint8, peer, comm, stream);
      if (IsError(sent)) return sent;
      return nccl_.recv(out, bytes, NcclType::kUint8, peer, comm, stream);
    });
  });
}

absl::Status NcclCommunicator::Barrier(const CallOptions& options) {
  // NCCL has no barrier; an all-reduce completes only when all ranks have called it.
  return Run("barrier", options, [&]() -> absl::Status {
    void* byte = nullptr;
    RETURN_IF_ERROR(comm_->OnStream([&](DeviceStream& stream) -> absl::Status {
      // Its content is not set: nobody looks at the result.
      ASSIGN_OR_RETURN(byte, stream.Scratch(DeviceStream::kOwn, 1));
      return absl::OkStatus();
    }));
    return comm_->Group([&](NcclComm* comm, CudaStream* stream) {
      return nccl_.all_reduce(byte, byte, 1, NcclType::kUint8, NcclOp::kMax, comm, stream);
    });
  });
}

void NcclCommunicator::Abort(absl::string_view reason) {
  // Only starts the abort: the caller may hold locks, and NCCL may take seconds to free the
  // communicator.
  comm_->Break(absl::AbortedError(reason));
}

absl::Status NcclCommunicator::WaitFor(void* event) {
  return comm_->OnStream(
      [&](DeviceStream& stream) { return stream.WaitFor(static_cast<CudaEvent*>(event)); });
}

absl::StatusOr<void*> NcclCommunicator::Reserve(size_t bytes) {
  void* memory = nullptr;
  RETURN_IF_ERROR(comm_->OnStream([&](DeviceStream& stream) -> absl::Status {
    ASSIGN_OR_RETURN(memory, stream.Scratch(DeviceStream::kCallers, bytes));
    return absl::OkStatus();
  }));
  return memory;
}

absl::StatusOr<std::shared_ptr<void>> NcclCommunicator::Allocate(size_t bytes) {
  if (bytes == 0) return nullptr;
  std::shared_ptr<void> memory;
  RETURN_IF_ERROR(comm_->OnStream([&](DeviceStream& stream) -> absl::Status {
    ASSIGN_OR_RETURN(memory, stream.memory().Take(bytes));
    return absl::OkStatus();
  }));
  return memory;
}

absl::Status NcclCommunicator::CopyOnDevice(void* to, const void* from, size_t bytes,
                                            const CallOptions& options) {
  return Copy("copy", options,
              [&](DeviceStream& stream) { return stream.CopyOnDevice(to, from, bytes); });
}

absl::Status NcclCommunicator::CopyToHost(void* to_host, const void* from, size_t bytes,
                                          const CallOptions& options) {
  return Copy("copy to the host", options,
              [&](DeviceStream& stream) { return stream.CopyToHost(to_host, from, bytes); });
}

absl::Status NcclCommunicator::CopyFromHost(void* to, const void* from_host, size_t bytes,
                                            const CallOptions& options) {
  return Copy("copy from the host", options,
              [&](DeviceStream& stream) { return stream.CopyFromHost(to, from_host, bytes); });
}

// Each rank reduces one part on its host; then the parts are gathered.
absl::Status NcclCommunicator::AllReduceOnHost(const Piece& piece, DataType type, ReduceOp op) {
  const std::vector<size_t> counts = SplitEvenly(piece.count, size_);
  const std::vector<size_t> bytes = Times(counts, SizeOf(type));
  char* own = At(piece.out, Before(bytes, rank_));
  RETURN_IF_ERROR(ReduceScatterOnHost(piece.in, own, counts, type, op));
  return GatherBlocks(own, piece.out, bytes);
}

absl::Status NcclCommunicator::ReduceScatterOnHost(const void* in, void* out,
                                                   absl::Span<const size_t> counts, DataType type,
                                                   ReduceOp op) {
  const size_t own_bytes = counts[rank_] * SizeOf(type);
  const size_t all_bytes = own_bytes * size_;
  void* parts = nullptr;  // all ranks' values of the block that this rank keeps
  RETURN_IF_ERROR(comm_->OnStream([&](DeviceStream& stream) -> absl::Status {
    // This rank may keep nothing and still has to send its peers their blocks, so the exchange
    // below is not skipped.
    if (all_bytes == 0) return absl::OkStatus();
    ASSIGN_OR_RETURN(parts, stream.Scratch(DeviceStream::kOwn, all_bytes));
    return absl::OkStatus();
  }));
  RETURN_IF_ERROR(ExchangeBlocks(in, Times(counts, SizeOf(type)), parts,
                                 std::vector<size_t>(size_, own_bytes)));
  // Never shrinks: fresh memory would cost page faults in each call.
  host_scratch_.resize(std::max(host_scratch_.size(), all_bytes));
  char* const host = host_scratch_.data();
  RETURN_IF_ERROR(comm_->OnStream(
      [&](DeviceStream& stream) { return stream.CopyToHost(host, parts, all_bytes); }));
  // The copy is asynchronous, and this thread is about to read what it writes.
  RETURN_IF_ERROR(comm_->Synchronize());
  for (int r = 1; r < size_; ++r) {
    GetReduceFunction(type, op)(host, host, host + r * own_bytes, counts[rank_]);
  }
  RETURN_IF_ERROR(comm_->OnStream(
      [&](DeviceStream& stream) { return stream.CopyFromHost(out, host, own_bytes); }));
  return comm_->Synchronize();  // the next call reuses `host`
}

}  // namespace hvd::collectives::nccl
