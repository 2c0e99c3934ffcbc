// The common wrapper of the C API's functions: catches exceptions, converts errors to codes, and
// detects calls from callbacks.
#ifndef RENDEZVOUS_C_API_GUARDED_H_
#define RENDEZVOUS_C_API_GUARDED_H_

#include <cstdint>
#include <exception>
#include <utility>

#include "absl/status/status.h"
#include "base/os/process_limits.h"

namespace hvd::rendezvous::c_api {

// Converts a status to a code of the C API, and stores an error's message, as one line, for
// LastError.
int32_t ToCode(const absl::Status& status);
// The message of the calling thread's last error; never nullptr.
const char* LastError();

// Calls `function` and converts its status to a code. Exceptions must not cross the C API, so they
// are converted too.
template <typename Function>
int32_t Guarded(Function function) {
  try {
    return ToCode(std::move(function)());
  } catch (const std::exception& error) {
    return ToCode(os::StatusOf(error));
  }
}

// Marks the calling thread as inside a callback during its lifetime.
class InCallback {
 public:
  InCallback();
  ~InCallback();
  InCallback(const InCallback&) = delete;
  InCallback& operator=(const InCallback&) = delete;
};

// Errors:
//   - FailedPrecondition: the calling thread is inside a callback, where `what` is not allowed.
absl::Status CheckNotInCallback(const char* what);

}  // namespace hvd::rendezvous::c_api

#endif  // RENDEZVOUS_C_API_GUARDED_H_
