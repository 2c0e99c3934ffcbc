#include "worker_runtime/api/backends.h"

#include "base/os/host_identity.h"
#include "collectives/gloo/gloo_backend.h"
#include "collectives/hierarchical/hierarchical_backend.h"
#include "collectives/inproc/inproc_backend.h"
#include "collectives/nccl/nccl_backend.h"
#include "collectives/shm/shm_backend.h"
#include "collectives/tcp/tcp_backend.h"

namespace hvd::worker_runtime::api {

std::string HostIdentityOf(const settings::RuntimeEnv& env) {
  // Ranks without an identity share memory with nobody: each then counts as a host of its own.
  return env.shared_memory ? os::HostIdentity() : "";
}

std::unique_ptr<collectives::Backend> MakeBackend(const settings::RuntimeEnv& env) {
  // Without an agent the world has one rank, whose data needs neither sockets nor shared memory.
  if (env.agent_socket.empty()) return collectives::inproc::MakeInprocBackend();
  return MakeGroupBackend(env);
}

std::unique_ptr<collectives::Backend> MakeGroupBackend(const settings::RuntimeEnv& env) {
  return collectives::hierarchical::MakeHierarchicalBackend(
      HostIdentityOf(env), {env.hierarchical_allreduce, env.hierarchical_allgather},
      collectives::shm::MakeShmBackend(),
      env.gloo ? collectives::gloo::MakeGlooBackend() : collectives::tcp::MakeTcpBackend());
}

std::shared_ptr<collectives::DeviceBackend> MakeDeviceBackend(const settings::RuntimeEnv& env) {
  return collectives::nccl::MakeInstalledNcclBackend(
      {env.nccl_host_id, env.nccl_shares_gpus, env.nccl_is_only_way, !env.gpu_operations});
}

}  // namespace hvd::worker_runtime::api
