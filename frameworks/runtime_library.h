// The function table of the runtime (libhvd.so) that this process has loaded, for the framework
// libraries.
#ifndef FRAMEWORKS_RUNTIME_LIBRARY_H_
#define FRAMEWORKS_RUNTIME_LIBRARY_H_

#include <string>

#include "worker_runtime/api/hvd_c_api.h"

namespace hvd::frameworks {

// The functions of the one instance of libhvd.so that Python has loaded. Immutable once found.
struct RuntimeLibrary {
  decltype(&hvd_last_error) last_error = nullptr;
  decltype(&hvd_submit) submit = nullptr;
  decltype(&hvd_submit_then) submit_then = nullptr;
  decltype(&hvd_wait) wait = nullptr;
  decltype(&hvd_result) result = nullptr;
  decltype(&hvd_release) release = nullptr;
  decltype(&hvd_takes_device) takes_device = nullptr;
  decltype(&hvd_stream_mark) stream_mark = nullptr;
  decltype(&hvd_stream_forget) stream_forget = nullptr;
  decltype(&hvd_stream_to_host) stream_to_host = nullptr;
  decltype(&hvd_stream_to_device) stream_to_device = nullptr;
};

// Finds the functions of the libhvd.so at `path`, which this process must have loaded already.
// Returns an error in one line, or "". Thread-safe; a second call changes nothing.
std::string FindRuntimeLibrary(const char* path);

// The functions that FindRuntimeLibrary has found; nullptr before.
const RuntimeLibrary* Runtime();

// Whether the world can still be used after a failure with this status code.
bool WorldGoesOn(int32_t status);

// The message of the framework's exception for a status code: "HorovodInternalError: text (code
// 10)", or with HorovodRequestError if WorldGoesOn(status). horovod.common.exceptions parses it.
// The text is the last error of this thread's calls of the runtime, unless `text` is given.
std::string ErrorText(int32_t status);
std::string ErrorText(int32_t status, const std::string& text);

}  // namespace hvd::frameworks

#endif  // FRAMEWORKS_RUNTIME_LIBRARY_H_
