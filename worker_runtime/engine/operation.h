// An operation: the tensors of one submission, with their results.
#ifndef WORKER_RUNTIME_ENGINE_OPERATION_H_
#define WORKER_RUNTIME_ENGINE_OPERATION_H_

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker_runtime/engine/completion.h"
#include "worker_runtime/engine/request.h"
#include "worker_runtime/negotiation/tensor_signature.h"
#include "worker_runtime/timeline/recorder.h"

namespace hvd::worker_runtime::engine {

// Written by the engine's thread until `done`, then read by users.
struct Operation {
  std::vector<negotiation::SignaturePtr> signatures;  // one for each tensor, as the next two
  std::vector<TensorMemory> requests;
  std::vector<TensorResult> results;
  std::vector<std::shared_ptr<void>> memory;  // of results without a place in the request
  size_t unfinished = 0;                      // tensors
  timeline::Recorder::Submission submission;
  absl::Status status;  // the first error
  Completion done;
  std::atomic<bool> blocks{false};  // a thread has waited for it for long
  // Called once, right after `done` is set, by the thread that does the engine's work. May be
  // empty.
  std::function<void(std::shared_ptr<Operation>)> then;
};
using OperationPtr = std::shared_ptr<Operation>;

// One tensor of an operation.
struct OperationTensor {
  OperationPtr operation;
  size_t index = 0;

  const negotiation::TensorSignature& signature() const { return *operation->signatures[index]; }
  const TensorMemory& request() const { return operation->requests[index]; }
  TensorResult& result() const { return operation->results[index]; }

  // The memory for the result of `bytes`: that of the request, if its buffer is `expected` bytes
  // and `bytes == expected`; else new memory of the host. Recorded in the result.
  // Errors:
  //   - ResourceExhausted: there is no memory.
  absl::StatusOr<void*> PrepareOutput(size_t bytes, size_t expected) const;
  absl::StatusOr<void*> PrepareOutput(size_t bytes) const { return PrepareOutput(bytes, bytes); }
  // The last tensor of an operation to finish completes it.
  void Finish(const absl::Status& status) const;
};

}  // namespace hvd::worker_runtime::engine

#endif  // WORKER_RUNTIME_ENGINE_OPERATION_H_
