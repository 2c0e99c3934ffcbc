// A worker's backends, as its environment wants them.
#ifndef WORKER_RUNTIME_API_BACKENDS_H_
#define WORKER_RUNTIME_API_BACKENDS_H_

#include <memory>

#include "base/settings/runtime_env.h"
#include "collectives/backend.h"
#include "collectives/device_communicator.h"

namespace hvd::worker_runtime::api {

// Shared memory in a host, TCP across hosts. For a worker without an agent, which is alone: memory
// of the process.
std::unique_ptr<collectives::Backend> MakeBackend(const settings::RuntimeEnv& env);

// For tensors on devices; nullptr: they are not for the runtime. It looks for NCCL when there is
// such a tensor, not before.
std::shared_ptr<collectives::DeviceBackend> MakeDeviceBackend(const settings::RuntimeEnv& env);

}  // namespace hvd::worker_runtime::api

#endif  // WORKER_RUNTIME_API_BACKENDS_H_
