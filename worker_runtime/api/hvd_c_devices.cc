// The functions of the C ABI for the streams and the memory of other libraries on CUDA devices.
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "collectives/nccl/foreign_stream.h"
#include "collectives/nccl/library.h"
#include "worker_runtime/api/guarded.h"
#include "worker_runtime/api/hvd_c_api.h"

namespace {

namespace nccl = hvd::collectives::nccl;
using hvd::worker_runtime::api::Guarded;
using nccl::ForeignStream;

absl::StatusOr<ForeignStream> Open(int32_t device, void* stream) {
  const absl::StatusOr<nccl::GpuLibraries>& libraries = nccl::InstalledGpuLibraries();
  RETURN_IF_ERROR(libraries.status());
  return ForeignStream::Of(libraries->cuda, device, static_cast<nccl::CudaStream*>(stream));
}

}  // namespace

int32_t hvd_record_event(int32_t device, void* stream, void** event) {
  return Guarded([&]() -> absl::Status {
    ASSIGN_OR_RETURN(ForeignStream opened, Open(device, stream));
    ASSIGN_OR_RETURN(*event, opened.Mark());
    return absl::OkStatus();
  });
}

int32_t hvd_destroy_event(int32_t device, void* event) {
  return Guarded([&]() -> absl::Status {
    ASSIGN_OR_RETURN(ForeignStream opened, Open(device, nullptr));
    opened.Forget(static_cast<nccl::CudaEvent*>(event));
    return absl::OkStatus();
  });
}

int32_t hvd_device_copy(int32_t device, void* stream, int32_t way, void* to, const void* from,
                        int64_t bytes) {
  return Guarded([&]() -> absl::Status {
    if (bytes < 0) return absl::InvalidArgumentError("a copy of less than nothing");
    ASSIGN_OR_RETURN(ForeignStream opened, Open(device, stream));
    const nccl::BusCopy copy[] = {{to, from, static_cast<size_t>(bytes)}};
    if (way == HVD_TO_HOST) return opened.CopyToHost(copy);
    return way == HVD_FROM_HOST ? opened.CopyToDevice(copy) : opened.CopyOnDevice(copy);
  });
}

int32_t hvd_device_allocate(int32_t device, int64_t bytes, void** memory) {
  return Guarded([&]() -> absl::Status {
    if (bytes <= 0) return absl::InvalidArgumentError("no memory of that size");
    ASSIGN_OR_RETURN(ForeignStream opened, Open(device, nullptr));
    ASSIGN_OR_RETURN(*memory, opened.Allocate(static_cast<size_t>(bytes)));
    return absl::OkStatus();
  });
}

int32_t hvd_device_free(int32_t device, void* memory) {
  return Guarded([&]() -> absl::Status {
    ASSIGN_OR_RETURN(ForeignStream opened, Open(device, nullptr));
    opened.Free(memory);
    return absl::OkStatus();
  });
}

int32_t hvd_device_of(const void* address, int32_t* device) {
  return Guarded([&]() -> absl::Status {
    const absl::StatusOr<nccl::GpuLibraries>& libraries = nccl::InstalledGpuLibraries();
    RETURN_IF_ERROR(libraries.status());
    ASSIGN_OR_RETURN(*device, ForeignStream::DeviceOf(libraries->cuda, address));
    return absl::OkStatus();
  });
}
