// Collectives on CUDA tensors, by NCCL.
#ifndef COLLECTIVES_NCCL_NCCL_BACKEND_H_
#define COLLECTIVES_NCCL_NCCL_BACKEND_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "collectives/device_communicator.h"
#include "collectives/nccl/library.h"
#include "collectives/nccl/session.h"

namespace hvd {

// `libraries`, which must live for ever, may be absent; peers are told of it. `host_id`: what
// NCCL_HOSTID says, by which NCCL takes ranks for those of different hosts. Every communicator
// has a stream of its own, and a thread while it ends. What travels between hosts is not encrypted.
// Peers prove that they know the group's secret before they learn where to connect.
std::unique_ptr<DeviceBackend> MakeNcclBackend(const absl::StatusOr<GpuLibraries>& libraries,
                                               const std::string& host_id,
                                               const NcclBounds& limits = {});

// With what is installed here, which is looked for when a device is to be connected.
std::unique_ptr<DeviceBackend> MakeInstalledNcclBackend(const std::string& host_id);

// Whether this process has a CUDA driver.
bool HasCudaDriver();

// NCCL's version, as 22307 for 2.23.7; 0 if this process can't use it, for want of it or of a
// driver.
int InstalledNcclVersion();

}  // namespace hvd

#endif  // COLLECTIVES_NCCL_NCCL_BACKEND_H_
