// The staged communicator for CUDA tensors, which copies through host memory, for ranks that can't
// use NCCL together.
#ifndef COLLECTIVES_NCCL_STAGED_COMMUNICATOR_H_
#define COLLECTIVES_NCCL_STAGED_COMMUNICATOR_H_

#include <memory>

#include "absl/status/statusor.h"
#include "collectives/communicator.h"
#include "collectives/device_communicator.h"
#include "collectives/nccl/abi.h"

namespace hvd::collectives::nccl {

// Every operation copies its input to the host, runs on `host`, and copies the result back; those
// with much data do so in parts that overlap (StagingPipeline), each of which is one operation of
// `host`. If the ranks share memory, an all-reduce of much data goes there (SharedStaging). Belongs
// to the thread that calls the operations of `host`, which must outlive it, as must `cuda`. Abort()
// aborts `host`.
// Errors here: those of DeviceStream::Create. Errors of operations: those of `host` and of the
// driver.
absl::StatusOr<std::unique_ptr<DeviceCommunicator>> MakeStagedCommunicator(
    const CudaFunctions& cuda, int device, Communicator& host);

}  // namespace hvd::collectives::nccl

#endif  // COLLECTIVES_NCCL_STAGED_COMMUNICATOR_H_
