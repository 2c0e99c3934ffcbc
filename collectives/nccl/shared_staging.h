// An all-reduce of device memory through memory that the ranks of a host share.
#ifndef COLLECTIVES_NCCL_SHARED_STAGING_H_
#define COLLECTIVES_NCCL_SHARED_STAGING_H_

#include <array>
#include <cstddef>
#include <memory>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "collectives/communicator.h"
#include "collectives/nccl/device_stream.h"
#include "collectives/nccl/part_layout.h"
#include "collectives/piece_list.h"
#include "collectives/types.h"

namespace hvd::collectives::nccl {

// The devices copy to and from the shared memory, which each rank page-locks. So the host only
// reduces: each rank its share of a part, from all ranks' memory into its own, from where the
// devices of all ranks take it. Between two parts the ranks meet. At meeting k
//
//   - every rank has part k in its memory, and has reduced its share of part k - 1: part k can be
//     reduced, and part k - 1 can be copied to the devices;
//   - every device has part k - 3 back: its memory can be overwritten with part k + 2.
//
// So each copy has the time of two reductions. One thread at a time may use it.
class SharedStaging {
 public:
  // `memory` is that of rank `rank` of `ranks`, at least 2, and must outlive this, as must `cuda`.
  // Errors: those of DeviceStream::Create; ResourceExhausted, Internal: the memory can't be locked.
  static absl::StatusOr<std::unique_ptr<SharedStaging>> Create(const CudaFunctions& cuda,
                                                               int device, int rank, int ranks,
                                                               const SharedMemory& memory);
  ~SharedStaging();
  SharedStaging(const SharedStaging&) = delete;
  SharedStaging& operator=(const SharedStaging&) = delete;

  // `meet` waits for all ranks. The copies come after the work so far of the stream `before`. When
  // it returns, no copy of this rank is pending, even after an error.
  // Errors: the first one of `meet` or of the driver.
  absl::Status AllReduce(const PieceList& pieces, DataType type, ReduceOp op, double factor,
                         DeviceStream& before, absl::FunctionRef<absl::Status()> meet);

 private:
  static constexpr size_t kSlots = 5;
  using Streams = std::array<std::unique_ptr<DeviceStream>, kSlots>;
  struct Operation;

  SharedStaging(Streams streams, int rank, int ranks, const SharedMemory& memory)
      : streams_(std::move(streams)), rank_(rank), ranks_(ranks), memory_(memory) {}

  DeviceStream& StreamOf(size_t part) { return *streams_[part % kSlots]; }
  char* MemoryOf(int rank, size_t part) const;
  size_t PartBytes() const;
  absl::Status RunParts(const Operation& operation, DeviceStream& before);
  absl::Status CopyIn(const Operation& operation, size_t part);
  absl::Status CopyOut(const Operation& operation, size_t part);
  void Reduce(const Operation& operation, size_t part);
  absl::Status AwaitCopies();

  const Streams streams_;
  const int rank_;
  const int ranks_;
  const SharedMemory memory_;
  bool is_locked_ = false;
};

}  // namespace hvd::collectives::nccl

#endif  // COLLECTIVES_NCCL_SHARED_STAGING_H_
