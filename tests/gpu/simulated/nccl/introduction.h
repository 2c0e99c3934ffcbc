// What the ranks of a simulated NCCL communicator tell one another before the first operation.
#ifndef TESTS_GPU_SIMULATED_NCCL_INTRODUCTION_H_
#define TESTS_GPU_SIMULATED_NCCL_INTRODUCTION_H_

#include <string>
#include <vector>

#include "tests/gpu/simulated/nccl/mesh.h"

namespace simulated_gpu {

// SIMULATED_NCCL_VERSION: 23003 is 2.30.3.
int SimulatedNcclVersion();

struct Introduction {
  int version;
  int size;
  bool shares_gpu;  // NCCL_MULTI_RANK_GPU_ENABLE=1, and a version that knows it
  char host[64];    // NCCL_HOSTID
  char gpu[16];

  static Introduction Of(int device);
  // Waits for all ranks.
  Mesh::Outcome Exchange(Mesh& mesh, std::vector<Introduction>* all) const;
  // Why rank `rank`, whose introduction this is, can't take part; empty: it can.
  std::string FindProblem(const std::vector<Introduction>& all, int rank) const;
};

}  // namespace simulated_gpu

#endif  // TESTS_GPU_SIMULATED_NCCL_INTRODUCTION_H_
