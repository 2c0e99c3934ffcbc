// One rank's part of an operation of the simulated NCCL: what its kernel does.
#ifndef TESTS_GPU_SIMULATED_NCCL_OPERATION_H_
#define TESTS_GPU_SIMULATED_NCCL_OPERATION_H_

#include <cstddef>
#include <vector>

#include "tests/gpu/simulated/nccl/mesh.h"
#include "tests/gpu/simulated/nccl/reduce.h"

namespace simulated_gpu {

struct Operation {
  enum Kind { kAllReduce, kBroadcast, kReduce, kAllGather, kReduceScatter, kSend, kReceive };

  Kind kind;
  const void* in;
  void* out;
  size_t count;
  NcclType type;
  NcclOp op = NcclOp::kSum;
  int peer = 0;                   // or the root
  std::vector<char> factor = {};  // of this rank's values, if there is one
};

// Runs the operations of a group, whose buffers are on devices: the collectives in their order,
// then all sends and receives at once. A buffer that is on no device is a fault of the driver.
Mesh::Outcome RunGroup(Mesh& mesh, const std::vector<Operation>& operations);

}  // namespace simulated_gpu

#endif  // TESTS_GPU_SIMULATED_NCCL_OPERATION_H_
