// Factories of the worker's collective backends, according to its environment.
#ifndef WORKER_RUNTIME_API_BACKENDS_H_
#define WORKER_RUNTIME_API_BACKENDS_H_

#include <memory>
#include <string>

#include "base/settings/runtime_env.h"
#include "collectives/backend.h"
#include "collectives/device_communicator.h"

namespace hvd::worker_runtime::api {

// Returns the backend for host memory: shared memory within a host and TCP across hosts. A worker
// without an agent, the only rank of its world, gets the in-process backend.
std::unique_ptr<collectives::Backend> MakeBackend(const settings::RuntimeEnv& env);

// The identity by which ranks find that they share memory; empty: this one shares with nobody.
std::string HostIdentityOf(const settings::RuntimeEnv& env);

// Returns the backend for host memory of groups that need no agent.
std::unique_ptr<collectives::Backend> MakeGroupBackend(const settings::RuntimeEnv& env);

// Returns the backend for tensors on devices. It loads NCCL at the first such tensor, not before.
std::shared_ptr<collectives::DeviceBackend> MakeDeviceBackend(const settings::RuntimeEnv& env);

}  // namespace hvd::worker_runtime::api

#endif  // WORKER_RUNTIME_API_BACKENDS_H_
