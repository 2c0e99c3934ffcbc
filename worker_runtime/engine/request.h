// Requests of users, and their results.
#ifndef WORKER_RUNTIME_ENGINE_REQUEST_H_
#define WORKER_RUNTIME_ENGINE_REQUEST_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "collectives/communicator.h"
#include "collectives/types.h"
#include "worker_runtime/negotiation/op_kind.h"
#include "worker_runtime/negotiation/tensor_signature.h"

namespace hvd::worker_runtime::engine {

inline constexpr int kHostMemory = -1;
// Names are sent to all ranks, which keep them.
inline constexpr size_t kMostNameBytes = size_t{8} << 20;

// A tensor of a broadcast in several places of host memory: their bytes together. The stretches'
// lengths are the same on all ranks.
struct ScatteredTensor {
  std::vector<collectives::Stretch> stretches;
  // See ObserveFunction; called by the engine.
  std::function<void(const void* bytes, size_t count)> observe;
};

// The memory of one tensor of an operation; borrowed until the operation is done.
struct TensorMemory {
  const void* input = nullptr;
  // The memory for the result if its size is known beforehand (all-reduce: may equal input;
  // broadcast: the buffer itself, read on the root unless input is given). For all-gather and
  // all-to-all it is a guess: that every rank contributes as many rows as this one, or that as many
  // arrive as are sent; a wrong guess is not used. nullptr, or not used: the engine allocates, in
  // the same memory.
  void* output = nullptr;
  // The place of both: this CUDA device, or host memory. On a device only the operations of
  // IsForDevices (device_executor.h) are possible, and all-reduces and broadcasts need an output.
  int device = kHostMemory;
  // A CUDA event after which they may be used; nullptr: at once.
  void* ready_event = nullptr;
  // A broadcast's memory if it is not in one place, instead of all fields above; else nullptr.
  std::shared_ptr<const ScatteredTensor> scattered = nullptr;
};

// One tensor of one operation, as a user thread submits it. Its name matches the ranks' requests
// and is unique among those in flight.
struct TensorRequest : negotiation::TensorSignature, TensorMemory {};

// The result of one tensor.
struct TensorResult {
  std::vector<int64_t> shape;
  // request.output, or memory of the same device that the handle owns.
  void* data = nullptr;
  std::vector<int32_t> received_splits;  // all-to-all: rows from each rank
  int last_joined_rank = -1;             // join
  bool world_is_changing = false;        // commit; the same on every rank
};

// Splits requests into their two parts and appends these.
void SplitRequests(std::vector<TensorRequest> requests,
                   std::vector<negotiation::SignaturePtr>& signatures,
                   std::vector<TensorMemory>& memory);

// Checks a request as far as one rank alone can.
// Errors:
//   - InvalidArgument: it is bad; names it and says why.
absl::Status CheckRequest(const negotiation::TensorSignature& request, const TensorMemory& memory,
                          int size);

}  // namespace hvd::worker_runtime::engine

#endif  // WORKER_RUNTIME_ENGINE_REQUEST_H_
