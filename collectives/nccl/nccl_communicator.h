// The DeviceCommunicator over a GuardedComm: maps each operation to NCCL calls.
#ifndef COLLECTIVES_NCCL_NCCL_COMMUNICATOR_H_
#define COLLECTIVES_NCCL_NCCL_COMMUNICATOR_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "collectives/device_communicator.h"
#include "collectives/nccl/convert.h"
#include "collectives/nccl/guarded_comm.h"

namespace hvd::collectives::nccl {

// Thread-safety and errors as in DeviceCommunicator, but messages don't name the peer that failed,
// since NCCL does not report it, and a timeout is the time of the whole operation, since NCCL does
// not tell what moves. int16, which NCCL lacks, is reduced on the host. The rounding of sums of
// 16-bit floats, and minima and maxima of NaNs, are as in NCCL.
class NcclCommunicator : public DeviceCommunicator {
 public:
  NcclCommunicator(const GpuLibraries& libraries, const GroupInfo& group, int device,
                   std::shared_ptr<GuardedComm> comm);
  ~NcclCommunicator() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int device() const override { return device_; }
  std::string ToString() const override;

  absl::Status AllReduce(const void* in, void* out, size_t count, DataType type, ReduceOp op,
                         const CallOptions& options) override;
  absl::Status AllReduceScaled(absl::Span<const Piece> pieces, DataType type, ReduceOp op,
                               double factor, const CallOptions& options) override;
  absl::Status AllGather(const void* in, void* out, absl::Span<const size_t> byte_counts,
                         const CallOptions& options) override;
  absl::Status Broadcast(void* buffer, size_t bytes, int root, const CallOptions& options) override;
  absl::Status AllToAll(const void* in, absl::Span<const size_t> send_bytes, void* out,
                        absl::Span<const size_t> receive_bytes,
                        const CallOptions& options) override;
  absl::Status ReduceScatter(const void* in, void* out, absl::Span<const size_t> counts,
                             DataType type, ReduceOp op, const CallOptions& options) override;
  absl::Status ReduceScatterScaled(const void* in, void* out, absl::Span<const size_t> counts,
                                   DataType type, ReduceOp op, double factor,
                                   const CallOptions& options) override;
  absl::Status SendReceive(int peer, const void* in, void* out, size_t bytes,
                           const CallOptions& options) override;
  absl::Status Barrier(const CallOptions& options) override;
  void Abort(absl::string_view reason) override;

  absl::Status WaitFor(void* event) override;
  absl::StatusOr<void*> Reserve(size_t bytes) override;
  absl::StatusOr<std::shared_ptr<void>> Allocate(size_t bytes) override;
  absl::Status CopyOnDevice(void* to, const void* from, size_t bytes,
                            const CallOptions& options) override;
  absl::Status CopyToHost(void* to_host, const void* from, size_t bytes,
                          const CallOptions& options) override;
  absl::Status CopyFromHost(void* to, const void* from_host, size_t bytes,
                            const CallOptions& options) override;

 private:
  // Runs one collective; an error's message contains its name and number and this rank.
  absl::Status Run(absl::string_view operation, const CallOptions& options,
                   absl::FunctionRef<absl::Status()> enqueue);
  // Runs one copy, which is not counted: it concerns this rank alone.
  absl::Status Copy(absl::string_view operation, const CallOptions& options,
                    absl::FunctionRef<absl::Status(DeviceStream&)> copy);
  // Within Run: calls `use` with the NCCL operation that multiplies by `factor` and reduces.
  absl::Status WithFactor(DataType type, const NcclReduction& reduction, double factor,
                          absl::FunctionRef<absl::Status(NcclOp)> use);
  // Within Run, for types that NCCL lacks.
  absl::Status AllReduceOnHost(const Piece& piece, DataType type, ReduceOp op);
  absl::Status ReduceScatterOnHost(const void* in, void* out, absl::Span<const size_t> counts,
                                   DataType type, ReduceOp op);
  // Within Run.
  absl::Status GatherBlocks(const void* in, void* out, absl::Span<const size_t> byte_counts);
  absl::Status ExchangeBlocks(const void* in, absl::Span<const size_t> send_bytes, void* out,
                              absl::Span<const size_t> receive_bytes);

  const NcclFunctions& nccl_;
  const int rank_;
  const int size_;
  const int device_;
  const Epoch epoch_;
  const std::shared_ptr<GuardedComm> comm_;
  std::vector<char> host_scratch_;
  // Of collectives: the same on all ranks, so that errors of different ranks can be matched.
  uint64_t calls_ = 0;
};

}  // namespace hvd::collectives::nccl

#endif  // COLLECTIVES_NCCL_NCCL_COMMUNICATOR_H_
