// The wrapper of C ABI functions that need a world.
#ifndef WORKER_RUNTIME_API_WITH_WORLD_H_
#define WORKER_RUNTIME_API_WITH_WORLD_H_

#include <memory>

#include "absl/status/status.h"
#include "worker_runtime/api/guarded.h"
#include "worker_runtime/api/runtime.h"

namespace hvd::worker_runtime::api {

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

#endif  // WORKER_RUNTIME_API_WITH_WORLD_H_
