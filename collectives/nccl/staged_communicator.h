// The staged communicator for CUDA tensors, which copies through host memory, for ranks that can't
// use NCCL together.
#ifndef COLLECTIVES_NCCL_STAGED_COMMUNICATOR_H_
#define COLLECTIVES_NCCL_STAGED_COMMUNICATOR_H_

#include <memory>

#include "collectives/communicator.h"
#include "collectives/device_communicator.h"
#include "collectives/nccl/device_stream.h"

namespace hvd::collectives::nccl {

// Every operation copies its input to the host, runs on `host`, and copies the result back. Belongs
// to the thread that calls the operations of `host`, which must outlive it. Abort() aborts `host`.
// Errors: those of `host` and of the driver.
std::unique_ptr<DeviceCommunicator> MakeStagedCommunicator(std::unique_ptr<DeviceStream> stream,
                                                           Communicator& host);

}  // namespace hvd::collectives::nccl

#endif  // COLLECTIVES_NCCL_STAGED_COMMUNICATOR_H_
