// The wrappers of all C ABI functions: catch exceptions and convert errors to status codes.
#ifndef WORKER_RUNTIME_API_GUARDED_H_
#define WORKER_RUNTIME_API_GUARDED_H_

#include <cstdint>
#include <exception>
#include <memory>

#include "absl/status/status.h"
#include "base/os/process_limits.h"
#include "worker_runtime/api/runtime.h"

namespace hvd::worker_runtime::api {

// Returns the Runtime of this process. It is never destroyed, because threads of the host language
// may still be in a call when the process exits. Thread-safe.
Runtime& TheRuntime();

// Returns the status code of the C ABI. Stores the message of an error for LastError.
int32_t ToCode(const absl::Status& status);
// Returns the message of the calling thread's last error; never nullptr.
const char* LastError();

// Calls function() and returns its status as a code. An exception becomes one, too (see StatusOf):
// exceptions must not cross the C ABI.
template <typename Function>
int32_t Guarded(Function function) {
  try {
    return ToCode(function());
  } catch (const std::exception& error) {
    return ToCode(os::StatusOf(error));
  }
}

// Calls function(world) within Guarded.
// Errors:
//   - FailedPrecondition: this process is in no world.
//   - The status of function.
template <typename Function>
int32_t WithWorld(Function function) {
  return Guarded([&]() -> absl::Status {
    const std::shared_ptr<ActiveWorld> active = TheRuntime().active();
    if (active == nullptr) {
      return absl::FailedPreconditionError("this process is in no world");
    }
    return function(*active);
  });
}

}  // namespace hvd::worker_runtime::api

#endif  // WORKER_RUNTIME_API_GUARDED_H_
