// The bytes in one direction between two ranks of a simulated NCCL communicator.
#ifndef TESTS_GPU_SIMULATED_NCCL_FLOW_H_
#define TESTS_GPU_SIMULATED_NCCL_FLOW_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/gpu/simulated/nccl/mesh.h"

namespace simulated_gpu {

// One side of the transfers of an exchange, with one peer. Before each transfer its size is sent,
// so that ranks which disagree about it are found out. Not safe for concurrent use.
class Flow {
 public:
  enum Direction { kOut, kIn };
  enum class State { kDone, kBlocked, kBroken, kMismatch };

  // Takes those of `transfers` that are with `peer`. `file` is a socket that does not block.
  Flow(int file, Direction direction, int peer, const std::vector<Transfer>& transfers);

  int file() const { return file_; }
  bool is_in() const { return direction_ == kIn; }
  // Goes on as far as possible.
  State Go();

 private:
  State Move(void* data, size_t bytes);

  int file_;
  Direction direction_;
  std::vector<Transfer> transfers_;
  size_t current_ = 0;
  uint64_t size_ = 0;  // as it is sent before the current transfer
  bool has_size_ = false;
  size_t moved_ = 0;  // bytes of the size, or of the transfer
};

}  // namespace simulated_gpu

#endif  // TESTS_GPU_SIMULATED_NCCL_FLOW_H_
