// Collectives on CUDA tensors by way of the host, for ranks that can't use NCCL together.
#ifndef COLLECTIVES_NCCL_STAGED_COMMUNICATOR_H_
#define COLLECTIVES_NCCL_STAGED_COMMUNICATOR_H_

#include <memory>

#include "collectives/communicator.h"
#include "collectives/device_communicator.h"
#include "collectives/nccl/device_stream.h"

namespace hvd::collectives::nccl {

// Every operation copies its input to the host, runs there, and copies the result back; one thread
// at a time, as the operations of `host` itself, which must outlive it. Errors are those of `host`
// and of the driver. Abort() aborts `host`.
std::unique_ptr<DeviceCommunicator> MakeStagedCommunicator(std::unique_ptr<DeviceStream> stream,
                                                           Communicator& host);

}  // namespace hvd::collectives::nccl

#endif  // COLLECTIVES_NCCL_STAGED_COMMUNICATOR_H_
