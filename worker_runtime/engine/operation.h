// Operation: the tensors of one submission, with their memory, results and completion.
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

// Written by the thread that runs the engine's rounds until `done` is set, then read by users.
struct Operation {
  // One element for each tensor in each of these three.
  std::vector<negotiation::SignaturePtr> signatures;
  std::vector<TensorMemory> requests;
  std::vector<TensorResult> results;
  std::vector<std::shared_ptr<void>> memory;  // results that are not in the request's memory
  size_t unfinished = 0;                      // tensors not finished yet
  timeline::Recorder::Submission submission;
  absl::Status status;  // the first error
  Completion done;
  std::atomic<bool> blocks{false};  // a wait for it was added to BlockedWaits
  // Called once, right after `done` is set, by the thread that runs the engine's rounds. May be
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

  // Returns the memory for a result of `bytes` and records it in the result: the request's output
  // buffer, if there is one and `bytes == expected`, the buffer's size; else new host memory, which
  // the operation owns.
  // Errors:
  //   - ResourceExhausted: there is no memory.
  absl::StatusOr<void*> PrepareOutput(size_t bytes, size_t expected) const;
  absl::StatusOr<void*> PrepareOutput(size_t bytes) const { return PrepareOutput(bytes, bytes); }
  // Finishes the tensor; the last tensor of an operation completes the operation.
  void Finish(const absl::Status& status) const;
};

}  // namespace hvd::worker_runtime::engine

#endif  // WORKER_RUNTIME_ENGINE_OPERATION_H_
