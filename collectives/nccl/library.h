// The run-time loader of NCCL and the CUDA driver. One build serves machines with and without them:
// an absent library is an error status.
#ifndef COLLECTIVES_NCCL_LIBRARY_H_
#define COLLECTIVES_NCCL_LIBRARY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "collectives/nccl/abi.h"

namespace hvd::collectives::nccl {

// The function tables of both libraries. Copies stay valid, since the libraries are never unloaded.
struct GpuLibraries {
  NcclFunctions nccl;
  CudaFunctions cuda;
  int nccl_version = 0;      // 22307 is 2.23.7; 0: there is no NCCL, and its table is empty
  absl::Status nccl_status;  // the reason if there is none
};

// Uses libraries that the process has loaded already (PyTorch brings its own NCCL), otherwise the
// first of the files that can be loaded. A name without a slash is searched for by the dynamic
// loader's rules. Thread-safe.
// Errors for the driver, and for NCCL in nccl_status:
//   - Unimplemented: no file can be loaded, or the library lacks a function or is too old. Lists
//     the attempts and their errors.
absl::StatusOr<GpuLibraries> LoadGpuLibraries(absl::Span<const std::string> nccl_files,
                                              absl::Span<const std::string> cuda_files);

// The result of LoadGpuLibraries with the usual files, which is called once.
const absl::StatusOr<GpuLibraries>& InstalledGpuLibraries();

// Candidate files of NCCL: the packages `nvidia-nccl-*` are installed in the same site-packages
// directory as this library, whose path is `own_file`, or as another library of a Python package
// among those that the process has `loaded`, such as a framework's. Pure.
std::vector<std::string> NcclFilesNear(absl::string_view own_file,
                                       absl::Span<const std::string> loaded = {});

// The version as text: "2.23.7" for 22307; "2.8.3" for 2803, the encoding up to NCCL 2.8.
std::string NcclVersionText(int version);

// RAII: makes a context of CUDA current on this thread, and then the one before it.
class ScopedContext {
 public:
  ScopedContext(const CudaFunctions& cuda, CudaContext* context) : cuda_(cuda) {
    cuda_.context_push(context);
  }
  ~ScopedContext() {
    CudaContext* popped = nullptr;
    cuda_.context_pop(&popped);
  }
  ScopedContext(const ScopedContext&) = delete;
  ScopedContext& operator=(const ScopedContext&) = delete;

 private:
  const CudaFunctions& cuda_;
};

}  // namespace hvd::collectives::nccl

#endif  // COLLECTIVES_NCCL_LIBRARY_H_
