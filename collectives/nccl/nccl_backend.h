// The backend for collectives on CUDA tensors, over NCCL.
#ifndef COLLECTIVES_NCCL_NCCL_BACKEND_H_
#define COLLECTIVES_NCCL_NCCL_BACKEND_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "collectives/device_communicator.h"
#include "collectives/nccl/guarded_comm.h"
#include "collectives/nccl/library.h"

namespace hvd::collectives::nccl {

// The NCCL settings of the environment that the ranks have to compare.
struct NcclEnvironment {
  std::string host_id;       // NCCL_HOSTID: ranks with different ones are on different hosts
  bool shares_gpus = false;  // NCCL_MULTI_RANK_GPU_ENABLE; NCCL 2.30 and later
  // Whether Stage returns an error, so that devices that NCCL can't connect are not staged through
  // host memory instead.
  bool is_only_way = false;
  // Whether all devices are staged, without a look for NCCL. One rank that says so is enough.
  bool is_off = false;
};

// `libraries` must never be destroyed. If it is an error, Connect returns Unimplemented on all
// ranks of the group. Every communicator has a stream, a watchdog thread, and one more thread while
// it ends. Traffic between hosts is not encrypted. Ranks prove that they know the group's secret
// before NCCL's connection data is used.
std::unique_ptr<DeviceBackend> MakeNcclBackend(const absl::StatusOr<GpuLibraries>& libraries,
                                               const NcclEnvironment& environment,
                                               const NcclBounds& limits = {});

// As MakeNcclBackend with InstalledGpuLibraries(), which is called when a device is first used.
std::unique_ptr<DeviceBackend> MakeInstalledNcclBackend(const NcclEnvironment& environment);

// Whether this process has a CUDA driver.
bool HasCudaDriver();

// The version of NCCL that this process uses, such as 22307 for 2.23.7; 0 if NCCL or the driver is
// missing.
int InstalledNcclVersion();

}  // namespace hvd::collectives::nccl

#endif  // COLLECTIVES_NCCL_NCCL_BACKEND_H_
