#include "worker_runtime/engine/operation.h"

#include "base/large_memory.h"

namespace hvd {

void* OperationTensor::PrepareOutput(size_t bytes, size_t expected) const {
  void* data = bytes == expected ? request().output : nullptr;
  if (data == nullptr) {
    // Never nullptr, so that users can tell a result.
    operation->memory.emplace_back(AllocateLargeMemory(bytes));
    data = operation->memory.back().get();
  }
  result().data = data;
  return data;
}

void OperationTensor::Finish(const absl::Status& status) const {
  operation->status.Update(status);
  if (--operation->unfinished == 0) operation->done.Notify();
}

}  // namespace hvd
