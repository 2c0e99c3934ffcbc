// What a user submitted at once, and what became of it.
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

// Written by the engine's thread until `done`, read by users afterwards.
struct Operation {
  std::vector<negotiation::SignaturePtr> signatures;  // one for each tensor, as the next two
  std::vector<TensorMemory> requests;
  std::vector<TensorResult> results;
  std::vector<std::shared_ptr<void>> memory;  // of results that the request had no place for
  size_t unfinished = 0;                      // tensors
  timeline::Recorder::Submission submission;
  absl::Status status;  // the first error
  Completion done;
  std::atomic<bool> blocks{false};  // somebody has waited for it for long
  // Called once, right after `done` is set, by whoever does the engine's work. May be empty.
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

  // Where the result of `bytes` goes: what the request gave for it, if that is for `expected` bytes
  // and so many they are, or new memory of the host. Notes it in the result.
  //   ResourceExhausted: there is none.
  absl::StatusOr<void*> PrepareOutput(size_t bytes, size_t expected) const;
  absl::StatusOr<void*> PrepareOutput(size_t bytes) const { return PrepareOutput(bytes, bytes); }
  // The last tensor of an operation that finishes makes it done.
  void Finish(const absl::Status& status) const;
};

}  // namespace hvd::worker_runtime::engine

#endif  // WORKER_RUNTIME_ENGINE_OPERATION_H_
