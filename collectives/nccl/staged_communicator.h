// A communicator for CUDA tensors by way of the host, for ranks that can't use NCCL together.
#ifndef COLLECTIVES_NCCL_STAGED_COMMUNICATOR_H_
#define COLLECTIVES_NCCL_STAGED_COMMUNICATOR_H_

#include <memory>

#include "collectives/communicator.h"
#include "collectives/device_communicator.h"
#include "collectives/nccl/device_stream.h"

namespace hvd::collectives::nccl {

// Every operation copies its input to the host, runs there, and copies the result back. One thread
// at a time, the same as for the operations of `host`, which must outlive it. Abort() aborts
// `host`.
// Errors: those of `host` and of the driver.
std::unique_ptr<DeviceCommunicator> MakeStagedCommunicator(std::unique_ptr<DeviceStream> stream,
                                                           Communicator& host);

}  // namespace hvd::collectives::nccl

#endif  // COLLECTIVES_NCCL_STAGED_COMMUNICATOR_H_
