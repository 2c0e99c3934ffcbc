// The common guard of all functions of the C ABI: catches exceptions and converts errors to codes.
#ifndef WORKER_RUNTIME_API_GUARDED_H_
#define WORKER_RUNTIME_API_GUARDED_H_

#include <cstdint>
#include <exception>

#include "absl/status/status.h"
#include "worker_runtime/api/runtime.h"

namespace hvd::worker_runtime::api {

// The one process-wide object. Never destroyed: worker threads of the host language may still be in
// a call at exit. Thread-safe.
Runtime& TheRuntime();

// The status code of the C ABI; keeps the message of an error for LastError.
int32_t ToCode(const absl::Status& status);
// The last error of the calling thread; never nullptr.
const char* LastError();

// function()'s status as a code. Nothing thrown may cross the C ABI.
template <typename Function>
int32_t Guarded(Function function) {
  try {
    return ToCode(function());
  } catch (const std::exception& error) {
    return ToCode(absl::InternalError(error.what()));
  }
}

}  // namespace hvd::worker_runtime::api

#endif  // WORKER_RUNTIME_API_GUARDED_H_
