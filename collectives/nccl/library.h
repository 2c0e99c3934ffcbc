// NCCL and the CUDA driver as they are found when the program runs: an absent library is a Status,
// not another build.
#ifndef COLLECTIVES_NCCL_LIBRARY_H_
#define COLLECTIVES_NCCL_LIBRARY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "collectives/nccl/abi.h"

namespace hvd::collectives::nccl {

// Both tables; copies may be kept for ever, since the libraries stay loaded.
struct GpuLibraries {
  NcclFunctions nccl;
  CudaFunctions cuda;
  int nccl_version = 0;      // 22307 is 2.23.7; 0: there is no NCCL, and its table is empty
  absl::Status nccl_status;  // why not
};

// What is in the process already (a torch brings its own NCCL) is taken first, then the files in
// their order; a name without a slash is looked up as the system does. Thread-safe.
//   Unimplemented, for the driver, or as nccl_status: no file can be loaded, or it lacks a
//   function, or is too old; says what was tried, and why it failed.
absl::StatusOr<GpuLibraries> LoadGpuLibraries(absl::Span<const std::string> nccl_files,
                                              absl::Span<const std::string> cuda_files);

// LoadGpuLibraries where they are usually found; done once.
const absl::StatusOr<GpuLibraries>& InstalledGpuLibraries();

// Where to look for NCCL, from a library's own path: the wheels `nvidia-nccl-*` lie beside the
// package that this code is a part of. Pure.
std::vector<std::string> NcclFilesNear(absl::string_view own_file);

// 22307: "2.23.7"; 2803, as it was written up to then: "2.8.3".
std::string NcclVersionText(int version);

}  // namespace hvd::collectives::nccl

#endif  // COLLECTIVES_NCCL_LIBRARY_H_
