#include "collectives/nccl/library.h"

#include <dlfcn.h>
#include <link.h>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace hvd::collectives::nccl {
namespace {

struct Library {
  void* handle = nullptr;
  std::string file;
};

std::string LastLoaderError() {
  const char* text = dlerror();
  return text == nullptr ? "unknown error" : text;
}

// Two passes: a library that the process has loaded already is preferred to any file, so that the
// process does not end up with two versions of it.
absl::StatusOr<Library> Open(absl::string_view what, absl::Span<const std::string> files) {
  for (const std::string& file : files) {
    void* loaded = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (loaded != nullptr) return Library{loaded, file};
  }
  std::vector<std::string> errors;
  for (const std::string& file : files) {
    // RTLD_NOW: a file that needs missing symbols fails here, with a text, and not at its first
    // call. RTLD_LOCAL: a framework that loads its own NCCL later must not be bound to this one.
    void* loaded = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (loaded != nullptr) return Library{loaded, file};
    const std::string error = LastLoaderError();
    errors.push_back(absl::StrContains(error, file) ? error : absl::StrCat(file, ": ", error));
  }
  return absl::UnimplementedError(
      absl::StrCat(what, " can't be loaded: ", absl::StrJoin(errors, "; ")));
}

// Looks up functions by name and collects the names of missing ones.
class Resolver {
 public:
  explicit Resolver(Library library) : library_(std::move(library)) {}

  template <typename Function>
  void Get(const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(dlsym(library_.handle, name));
    if (function == nullptr) missing_.push_back(name);
  }

  absl::Status status() const {
    if (missing_.empty()) return absl::OkStatus();
    return absl::UnimplementedError(
        absl::StrCat(library_.file, " has no ", absl::StrJoin(missing_, ", ")));
  }

 private:
  const Library library_;
  std::vector<std::string> missing_;
};

absl::Status LoadNccl(absl::Span<const std::string> files, GpuLibraries* out) {
  ASSIGN_OR_RETURN(Library library, Open("NCCL", files));
  Resolver resolver(library);
  NcclFunctions& f = out->nccl;
  // The version is checked before the other functions are looked up: "too old" says more than the
  // name of a missing function.
  resolver.Get("ncclGetVersion", f.get_version);
  RETURN_IF_ERROR(resolver.status());
  if (f.get_version(&out->nccl_version) != NcclResult::kSuccess ||
      out->nccl_version < kOldestNccl) {
    return absl::UnimplementedError(absl::StrCat(library.file, " is NCCL ",
                                                 NcclVersionText(out->nccl_version), "; at least ",
                                                 NcclVersionText(kOldestNccl), " is needed"));
  }
  resolver.Get("ncclGetUniqueId", f.get_unique_id);
  resolver.Get("ncclCommInitRankConfig", f.comm_init_rank_config);
  resolver.Get("ncclCommFinalize", f.comm_finalize);
  resolver.Get("ncclCommDestroy", f.comm_destroy);
  resolver.Get("ncclCommAbort", f.comm_abort);
  resolver.Get("ncclCommGetAsyncError", f.comm_get_async_error);
  resolver.Get("ncclGetErrorString", f.get_error_string);
  resolver.Get("ncclGetLastError", f.get_last_error);
  resolver.Get("ncclRedOpCreatePreMulSum", f.red_op_create_pre_mul_sum);
  resolver.Get("ncclRedOpDestroy", f.red_op_destroy);
  resolver.Get("ncclAllReduce", f.all_reduce);
  resolver.Get("ncclBroadcast", f.broadcast);
  resolver.Get("ncclReduce", f.reduce);
  resolver.Get("ncclAllGather", f.all_gather);
  resolver.Get("ncclReduceScatter", f.reduce_scatter);
  resolver.Get("ncclSend", f.send);
  resolver.Get("ncclRecv", f.recv);
  resolver.Get("ncclGroupStart", f.group_start);
  resolver.Get("ncclGroupEnd", f.group_end);
  return resolver.status();
}

absl::Status LoadCuda(absl::Span<const std::string> files, GpuLibraries* out) {
  ASSIGN_OR_RETURN(Library library, Open("the CUDA driver", files));
  Resolver resolver(library);
  CudaFunctions& f = out->cuda;
  resolver.Get("cuInit", f.init);
  resolver.Get("cuGetErrorString", f.get_error_string);
  resolver.Get("cuDeviceGetCount", f.device_get_count);
  resolver.Get("cuDeviceGetUuid", f.device_get_uuid);
  resolver.Get("cuDevicePrimaryCtxRetain", f.primary_context_retain);
  // The driver exports old and new forms of a function. CUDA's header maps the plain names to the
  // new ones; here it has to be done by hand.
  resolver.Get("cuDevicePrimaryCtxRelease_v2", f.primary_context_release);
  resolver.Get("cuCtxPushCurrent_v2", f.context_push);
  resolver.Get("cuCtxPopCurrent_v2", f.context_pop);
  resolver.Get("cuCtxGetDevice", f.context_get_device);
  resolver.Get("cuStreamCreate", f.stream_create);
  resolver.Get("cuStreamDestroy_v2", f.stream_destroy);
  resolver.Get("cuStreamGetCtx", f.stream_get_context);
  resolver.Get("cuStreamSynchronize", f.stream_synchronize);
  resolver.Get("cuStreamWaitEvent", f.stream_wait_event);
  resolver.Get("cuEventCreate", f.event_create);
  resolver.Get("cuEventDestroy_v2", f.event_destroy);
  resolver.Get("cuEventRecord", f.event_record);
  resolver.Get("cuEventQuery", f.event_query);
  resolver.Get("cuPointerGetAttribute", f.pointer_get_attribute);
  resolver.Get("cuMemAlloc_v2", f.memory_allocate);
  resolver.Get("cuMemFree_v2", f.memory_free);
  resolver.Get("cuMemHostAlloc", f.host_allocate);
  resolver.Get("cuMemFreeHost", f.host_free);
  resolver.Get("cuMemHostRegister_v2", f.host_register);
  resolver.Get("cuMemHostUnregister", f.host_unregister);
  resolver.Get("cuMemcpyDtoHAsync_v2", f.copy_to_host);
  resolver.Get("cuMemcpyHtoDAsync_v2", f.copy_from_host);
  resolver.Get("cuMemcpyDtoDAsync_v2", f.copy_on_device);
  return resolver.status();
}

std::string OwnFile() {
  Dl_info info;
  const bool found = dladdr(reinterpret_cast<const void*>(&InstalledGpuLibraries), &info) != 0;
  return found && info.dli_fname != nullptr ? info.dli_fname : "";
}

// The paths of all libraries of the process.
std::vector<std::string> LoadedFiles() {
  std::vector<std::string> files;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        static_cast<std::vector<std::string>*>(out)->emplace_back(info->dlpi_name);
        return 0;
      },
      &files);
  return files;
}

// From site-packages/horovod/lib/libhvd.so to site-packages; "": there is no such folder.
absl::string_view PackagesOf(absl::string_view own_file) {
  for (int up = 0; up < 3; ++up) {
    const size_t slash = own_file.rfind('/');
    if (slash == absl::string_view::npos || slash == 0) return "";
    own_file = own_file.substr(0, slash);
  }
  return own_file;
}

// The folder of Python packages that the file is in; "": it is in none.
absl::string_view SitePackagesOf(absl::string_view file) {
  for (const absl::string_view name : {"/site-packages", "/dist-packages"}) {
    const size_t found = file.find(absl::StrCat(name, "/"));
    if (found != absl::string_view::npos) return file.substr(0, found + name.size());
  }
  return "";
}

}  // namespace

absl::StatusOr<GpuLibraries> LoadGpuLibraries(absl::Span<const std::string> nccl_files,
                                              absl::Span<const std::string> cuda_files) {
  GpuLibraries result;
  // The driver comes first: without it there is no device, so NCCL need not be loaded.
  RETURN_IF_ERROR(LoadCuda(cuda_files, &result));
  result.nccl_status = LoadNccl(nccl_files, &result);
  if (!result.nccl_status.ok()) result.nccl_version = 0;
  return result;
}

const absl::StatusOr<GpuLibraries>& InstalledGpuLibraries() {
  // Never destroyed: threads that hang in NCCL may use it until the process ends.
  static const auto* const libraries = new absl::StatusOr<GpuLibraries>(
      LoadGpuLibraries(NcclFilesNear(OwnFile(), LoadedFiles()), {"libcuda.so.1"}));
  return *libraries;
}

std::vector<std::string> NcclFilesNear(absl::string_view own_file,
                                       absl::Span<const std::string> loaded) {
  std::vector<absl::string_view> folders;
  if (const absl::string_view own = PackagesOf(own_file); !own.empty()) folders.push_back(own);
  for (const std::string& file : loaded) {
    const absl::string_view found = SitePackagesOf(file);
    if (!found.empty() && !absl::c_linear_search(folders, found)) folders.push_back(found);
  }
  constexpr absl::string_view kName = "libnccl.so.2";
  std::vector<std::string> files = {std::string(kName)};
  for (const absl::string_view folder : folders) {
    // Where the wheel nvidia-nccl-cu* has it, the one that PyTorch and JAX use.
    files.push_back(absl::StrCat(folder, "/nvidia/nccl/lib/", kName));
  }
  return files;
}

std::string NcclVersionText(int version) {
  if (version < 10000) {  // up to 2.8
    return absl::StrCat(version / 1000, ".", version / 100 % 10, ".", version % 100);
  }
  return absl::StrCat(version / 10000, ".", version / 100 % 100, ".", version % 100);
}

}  // namespace hvd::collectives::nccl
