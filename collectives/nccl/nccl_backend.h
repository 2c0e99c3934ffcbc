// The backend for collectives on CUDA tensors, by NCCL.
#ifndef COLLECTIVES_NCCL_NCCL_BACKEND_H_
#define COLLECTIVES_NCCL_NCCL_BACKEND_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "collectives/device_communicator.h"
#include "collectives/nccl/guarded_comm.h"
#include "collectives/nccl/library.h"

namespace hvd::collectives::nccl {

// The environment settings of NCCL that peers have to know.
struct NcclEnvironment {
  std::string host_id;       // NCCL_HOSTID: ranks with different ones are on different hosts
  bool shares_gpus = false;  // NCCL_MULTI_RANK_GPU_ENABLE; NCCL 2.30 and later
  // Stage refuses: where devices can't be connected, nothing goes by way of the host instead.
  bool is_only_way = false;
};

// `libraries`, which must never be destroyed, may be absent; peers get to know that. Every
// communicator has a stream, a thread that watches its calls, and another while it ends. Traffic
// between hosts is not encrypted. Peers prove that they know the group's secret before they get the
// address to connect to.
std::unique_ptr<DeviceBackend> MakeNcclBackend(const absl::StatusOr<GpuLibraries>& libraries,
                                               const NcclEnvironment& environment,
                                               const NcclBounds& limits = {});

// With the installed libraries, which are searched when a device is to be connected.
std::unique_ptr<DeviceBackend> MakeInstalledNcclBackend(const NcclEnvironment& environment);

// Whether this process has a CUDA driver.
bool HasCudaDriver();

// NCCL's version, as 22307 for 2.23.7; 0 if this process can't use it, because it or a driver is
// missing.
int InstalledNcclVersion();

}  // namespace hvd::collectives::nccl

#endif  // COLLECTIVES_NCCL_NCCL_BACKEND_H_
