// What users submit, and what they get back.
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
// Names travel to all ranks, who keep them.
inline constexpr size_t kMostNameBytes = size_t{8} << 20;

// A tensor of a broadcast that lies in many places of host memory: as many bytes as these have
// together. The stretches' lengths are the same on all ranks.
struct ScatteredTensor {
  std::vector<collectives::Stretch> stretches;
  // See ObserveFunction; called by the engine.
  std::function<void(const void* bytes, size_t count)> observe;
};

// Where one tensor of an operation lies; borrowed until the operation is done.
struct TensorMemory {
  const void* input = nullptr;
  // Where the result goes if its size is known beforehand (all-reduce: may equal input; broadcast:
  // the buffer itself, read on the root unless input is given). For all-gather and all-to-all it is
  // a guess: that every rank gives as many rows as this one, or that as many come as go; it is not
  // used if that is wrong. nullptr, or not used: the engine allocates, in the same memory.
  void* output = nullptr;
  // Where both are: this CUDA device, or host memory. On a device only what IsForDevices
  // (device_executor.h) is done, and all-reduces and broadcasts need an output.
  int device = kHostMemory;
  // A CUDA event after which they may be used; nullptr: they may be.
  void* ready_event = nullptr;
  // A broadcast's memory if it is not in one place, instead of all the above; else nullptr.
  std::shared_ptr<const ScatteredTensor> scattered = nullptr;
};

// One tensor of one operation, as a user thread submits it. Its name matches the ranks' requests
// and is unique among those in flight.
struct TensorRequest : negotiation::TensorSignature, TensorMemory {};

// What became of one tensor.
struct TensorResult {
  std::vector<int64_t> shape;
  // request.output, or memory of the same device that the handle owns.
  void* data = nullptr;
  std::vector<int32_t> received_splits;  // all-to-all: rows from each rank
  int last_joined_rank = -1;             // join
  bool world_is_changing = false;        // commit; the same on every rank
};

// The two parts of requests, at the ends of these.
void SplitRequests(std::vector<TensorRequest> requests,
                   std::vector<negotiation::SignaturePtr>& signatures,
                   std::vector<TensorMemory>& memory);

// Whether one rank alone can tell that the request is bad.   InvalidArgument: it is; names it and
// says why.
absl::Status CheckRequest(const negotiation::TensorSignature& request, const TensorMemory& memory,
                          int size);

}  // namespace hvd::worker_runtime::engine

#endif  // WORKER_RUNTIME_ENGINE_REQUEST_H_
