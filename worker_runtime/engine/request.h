// Requests of user threads to the engine, and their results.
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
// The longest name of a tensor. Names are sent to all ranks, which cache them.
inline constexpr size_t kMostNameBytes = size_t{8} << 20;

// A broadcast's tensor that consists of several separate ranges of host memory. The lengths of the
// stretches are the same on all ranks.
struct ScatteredTensor {
  std::vector<collectives::Stretch> stretches;
  // See ObserveFunction; called by the engine.
  std::function<void(const void* bytes, size_t count)> observe;
};

// The memory of one tensor of an operation; borrowed until the operation is done.
struct TensorMemory {
  const void* input = nullptr;
  // The memory for the result. By operation:
  //   - All-reduce: as large as the input, which it may equal.
  //   - Broadcast: the buffer itself; on the root its contents are sent, unless `input` is given.
  //   - All-gather: room for as many rows from every rank as this one contributes.
  //   - All-to-all: room for as many rows as are sent.
  // In the last two the size is a guess; if it is wrong, the memory is not used. Where there is no
  // usable output the engine allocates one, on the same device.
  void* output = nullptr;
  // On a device: the size of `output`, which is not used for a result of another size. 0: the size
  // is as above.
  size_t output_bytes = 0;
  // The device of input and output: a CUDA device or host memory. On a device only the operations
  // of IsForDevices (device_executor.h) are possible, and all-reduces and broadcasts need an
  // output.
  int device = kHostMemory;
  // A CUDA event after which input and output may be used; nullptr: at once.
  void* ready_event = nullptr;
  // The memory of a broadcast of several ranges, in place of all fields above; else nullptr.
  std::shared_ptr<const ScatteredTensor> scattered = nullptr;
};

// One tensor of one operation, as a user thread submits it. Requests of different ranks belong
// together if their names are equal; a name is unique among the requests in flight on a rank.
struct TensorRequest : negotiation::TensorSignature, TensorMemory {};

// The result of one tensor.
struct TensorResult {
  std::vector<int64_t> shape;
  // request.output, or memory on the same device that the handle owns.
  void* data = nullptr;
  std::vector<int32_t> received_splits;  // all-to-all: rows from each rank
  int last_joined_rank = -1;             // join
  bool world_is_changing = false;        // commit; the same on every rank
};

// Splits each request into its signature and its memory, and appends these to the two vectors.
void SplitRequests(std::vector<TensorRequest> requests,
                   std::vector<negotiation::SignaturePtr>& signatures,
                   std::vector<TensorMemory>& memory);

// Checks a request as far as one rank alone can. `size` is the number of ranks.
// Errors:
//   - InvalidArgument: the request is invalid; the message names it and the reason.
absl::Status CheckRequest(const negotiation::TensorSignature& request, const TensorMemory& memory,
                          int size);

}  // namespace hvd::worker_runtime::engine

#endif  // WORKER_RUNTIME_ENGINE_REQUEST_H_
