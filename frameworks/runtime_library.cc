#include "frameworks/runtime_library.h"

#include <dlfcn.h>

#include <atomic>

namespace hvd::frameworks {
namespace {

std::atomic<const RuntimeLibrary*> found{nullptr};

template <typename Function>
bool Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

}  // namespace

std::string FindRuntimeLibrary(const char* path) {
  // RTLD_NOLOAD: only the instance that Python has loaded and initialised is useful, never a new
  // one.
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (library == nullptr) return std::string(path) + " is not loaded";
  decltype(&hvd_abi_version) abi_version = nullptr;
  if (!Find(library, "hvd_abi_version", &abi_version) || abi_version() != HVD_ABI_VERSION) {
    return std::string(path) + " is of another version of Horovod";
  }
  RuntimeLibrary runtime;
  const bool has_all = Find(library, "hvd_last_error", &runtime.last_error) &&
                       Find(library, "hvd_submit", &runtime.submit) &&
                       Find(library, "hvd_submit_then", &runtime.submit_then) &&
                       Find(library, "hvd_wait", &runtime.wait) &&
                       Find(library, "hvd_result", &runtime.result) &&
                       Find(library, "hvd_release", &runtime.release) &&
                       Find(library, "hvd_takes_device", &runtime.takes_device) &&
                       Find(library, "hvd_stream_mark", &runtime.stream_mark) &&
                       Find(library, "hvd_stream_forget", &runtime.stream_forget) &&
                       Find(library, "hvd_stream_to_host", &runtime.stream_to_host) &&
                       Find(library, "hvd_stream_to_device", &runtime.stream_to_device);
  if (!has_all) return std::string(path) + " lacks functions";
  // Never freed, since kernels may run until the process ends. If two threads race, the first wins.
  const auto* const made = new RuntimeLibrary(runtime);
  const RuntimeLibrary* none = nullptr;
  if (!found.compare_exchange_strong(none, made)) delete made;
  return "";
}

const RuntimeLibrary* Runtime() { return found.load(); }

bool WorldGoesOn(int32_t status) {
  return status == HVD_INVALID_ARGUMENT || status == HVD_UNIMPLEMENTED ||
         status == HVD_ALREADY_EXISTS || status == HVD_NOT_FOUND;
}

std::string ErrorText(int32_t status) { return ErrorText(status, Runtime()->last_error()); }

std::string ErrorText(int32_t status, const std::string& text) {
  return std::string(WorldGoesOn(status) ? "HorovodRequestError: " : "HorovodInternalError: ") +
         text + " (code " + std::to_string(status) + ")";
}

}  // namespace hvd::frameworks
