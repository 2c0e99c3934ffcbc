#include "worker_runtime/engine/operation.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/os/large_memory.h"

namespace hvd::worker_runtime::engine {

absl::StatusOr<void*> OperationTensor::PrepareOutput(size_t bytes, size_t expected) const {
  void* data = bytes == expected ? request().output : nullptr;
  if (data == nullptr) {
    // Not nullptr for 0 bytes either: a null pointer would look like a missing result.
    os::LargeMemory memory = os::AllocateLargeMemory(bytes);
    if (memory == nullptr) {
      return absl::ResourceExhaustedError(absl::StrCat("no memory for the result of '",
                                                       operation->signatures[index]->name, "', ",
                                                       bytes, " bytes"));
    }
    data = memory.get();
    operation->memory.emplace_back(std::move(memory));
  }
  result().data = data;
  return data;
}

void OperationTensor::Finish(const absl::Status& status) const {
  operation->status.Update(status);
  if (--operation->unfinished > 0) return;
  // Moved out, because the callback may own the operation: a reference cycle.
  const auto then = std::move(operation->then);
  operation->done.Notify();
  if (then) then(operation);
}

}  // namespace hvd::worker_runtime::engine
