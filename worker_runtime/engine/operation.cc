#include "worker_runtime/engine/operation.h"

namespace hvd {

void* OperationTensor::PrepareOutput(size_t bytes, size_t expected) const {
  void* data = bytes == expected ? request().output : nullptr;
  if (data == nullptr) {
    // Not zeroed: all of it is written. Never nullptr, so that users can tell a result.
    operation->memory.emplace_back(new char[bytes > 0 ? bytes : 1], std::default_delete<char[]>());
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
