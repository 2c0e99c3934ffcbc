// The common guard of all functions of the C API: catches exceptions, converts errors to codes, and
// knows callbacks.
#ifndef RENDEZVOUS_C_API_GUARDED_H_
#define RENDEZVOUS_C_API_GUARDED_H_

#include <cstdint>
#include <exception>
#include <new>
#include <utility>

#include "absl/status/status.h"

namespace hvd::rendezvous::c_api {

// The status code of the C API; keeps the message of an error for LastError, on one line.
int32_t ToCode(const absl::Status& status);
// The last error of the calling thread; never nullptr.
const char* LastError();

// function()'s status as a code. Nothing thrown may cross the C API.
template <typename Function>
int32_t Guarded(Function function) {
  try {
    return ToCode(std::move(function)());
  } catch (const std::bad_alloc&) {
    return ToCode(absl::ResourceExhaustedError("there is no memory left"));
  } catch (const std::exception& error) {
    return ToCode(absl::InternalError(error.what()));
  }
}

// Marks the calling thread as one that is in a callback, as long as it lives.
class InCallback {
 public:
  InCallback();
  ~InCallback();
  InCallback(const InCallback&) = delete;
  InCallback& operator=(const InCallback&) = delete;
};

// Errors:
//   - FailedPrecondition: the calling thread is in a callback; `what` can't be done there.
absl::Status CheckNotInCallback(const char* what);

}  // namespace hvd::rendezvous::c_api

#endif  // RENDEZVOUS_C_API_GUARDED_H_
