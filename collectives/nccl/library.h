// The run-time loader of NCCL and the CUDA driver: an absent library is a Status, not another
// build.
#ifndef COLLECTIVES_NCCL_LIBRARY_H_
#define COLLECTIVES_NCCL_LIBRARY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "collectives/nccl/abi.h"

namespace hvd::collectives::nccl {

// Both tables; copies stay valid, since the libraries are never unloaded.
struct GpuLibraries {
  NcclFunctions nccl;
  CudaFunctions cuda;
  int nccl_version = 0;      // 22307 is 2.23.7; 0: there is no NCCL, and its table is empty
  absl::Status nccl_status;  // the reason if there is none
};

// Libraries that are loaded already (a torch brings its own NCCL) take precedence, then the files
// in their order; a name without a slash is looked up by the system's rules. Thread-safe.
// Errors for the driver, and for NCCL as nccl_status:
//   - Unimplemented: no file can be loaded, or it lacks a function, or is too old; lists the
//     attempts and why they failed.
absl::StatusOr<GpuLibraries> LoadGpuLibraries(absl::Span<const std::string> nccl_files,
                                              absl::Span<const std::string> cuda_files);

// LoadGpuLibraries at the usual places; done once.
const absl::StatusOr<GpuLibraries>& InstalledGpuLibraries();

// The places to look for NCCL, from the path of this library: the wheels `nvidia-nccl-*` lie beside
// the package that this code is a part of. Pure.
std::vector<std::string> NcclFilesNear(absl::string_view own_file);

// 22307: "2.23.7"; 2803, the form of older versions: "2.8.3".
std::string NcclVersionText(int version);

}  // namespace hvd::collectives::nccl

#endif  // COLLECTIVES_NCCL_LIBRARY_H_
