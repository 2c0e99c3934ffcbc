// What users submit, and what they get back.
#ifndef WORKER_RUNTIME_ENGINE_REQUEST_H_
#define WORKER_RUNTIME_ENGINE_REQUEST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "collectives/types.h"
#include "worker_runtime/negotiation/op_kind.h"
#include "worker_runtime/negotiation/tensor_signature.h"

namespace hvd {

// One tensor of one operation, as a user thread submits it. `input` and `output` are borrowed until
// the handle is done.
struct TensorRequest {
  std::string name;  // matches the ranks' requests; unique among the requests in flight
  OpKind op = OpKind::kAllReduce;
  DataType type = DataType::kFloat32;
  std::vector<int64_t> shape;
  const void* input = nullptr;
  // Where the result goes if its size is known beforehand (all-reduce: may equal input; broadcast:
  // the buffer itself, read on the root unless input is given). nullptr: the engine allocates it.
  void* output = nullptr;
  Reduction reduction = Reduction::kSum;
  double prescale = 1.0;
  double postscale = 1.0;
  int root_rank = 0;
  std::vector<int32_t> splits;  // all-to-all: rows for each rank; empty: evenly
};

// What became of one tensor.
struct TensorResult {
  std::vector<int64_t> shape;
  void* data = nullptr;                  // request.output, or memory owned by the handle
  std::vector<int32_t> received_splits;  // all-to-all: rows from each rank
  int last_joined_rank = -1;             // join
  bool world_is_changing = false;        // commit; the same on every rank
};

// Whether one rank alone can tell that the request is bad.   InvalidArgument: it is; names it and
// says why.
absl::Status CheckRequest(const TensorRequest& request, int size);

TensorSignature SignatureOf(const TensorRequest& request);

}  // namespace hvd

#endif  // WORKER_RUNTIME_ENGINE_REQUEST_H_
