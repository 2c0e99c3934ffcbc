// The functions of the C ABI for CUDA streams of frameworks.
#include <vector>

#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "collectives/nccl/foreign_stream.h"
#include "collectives/nccl/library.h"
#include "worker_runtime/api/guarded.h"
#include "worker_runtime/api/hvd_c_api.h"

namespace {

using hvd::collectives::nccl::BusCopy;
using hvd::collectives::nccl::CudaEvent;
using hvd::collectives::nccl::CudaStream;
using hvd::collectives::nccl::ForeignStream;
using hvd::worker_runtime::api::Guarded;

absl::StatusOr<ForeignStream> Find(void* stream) {
  const auto& libraries = hvd::collectives::nccl::InstalledGpuLibraries();
  RETURN_IF_ERROR(libraries.status());
  return ForeignStream::Find(libraries->cuda, static_cast<CudaStream*>(stream));
}

std::vector<BusCopy> CopiesOf(const hvd_bus_copy* copies, int32_t count) {
  std::vector<BusCopy> all;
  for (int32_t i = 0; i < count; ++i) {
    all.push_back({copies[i].to, copies[i].from, static_cast<size_t>(copies[i].bytes)});
  }
  return all;
}

}  // namespace

int32_t hvd_stream_mark(void* stream, int32_t* device, void** event) {
  return Guarded([&]() -> absl::Status {
    ASSIGN_OR_RETURN(ForeignStream found, Find(stream));
    ASSIGN_OR_RETURN(*event, found.Mark());
    *device = found.device();
    return absl::OkStatus();
  });
}

int32_t hvd_stream_forget(void* stream, void* event) {
  return Guarded([&]() -> absl::Status {
    ASSIGN_OR_RETURN(ForeignStream found, Find(stream));
    found.Forget(static_cast<CudaEvent*>(event));
    return absl::OkStatus();
  });
}

int32_t hvd_stream_to_host(void* stream, const hvd_bus_copy* copies, int32_t count) {
  return Guarded([&]() -> absl::Status {
    ASSIGN_OR_RETURN(ForeignStream found, Find(stream));
    return found.CopyToHost(CopiesOf(copies, count));
  });
}

int32_t hvd_stream_to_device(void* stream, const hvd_bus_copy* copies, int32_t count) {
  return Guarded([&]() -> absl::Status {
    ASSIGN_OR_RETURN(ForeignStream found, Find(stream));
    return found.CopyToDevice(CopiesOf(copies, count));
  });
}
