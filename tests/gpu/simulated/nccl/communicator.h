// A communicator of the simulated NCCL.
#ifndef TESTS_GPU_SIMULATED_NCCL_COMMUNICATOR_H_
#define TESTS_GPU_SIMULATED_NCCL_COMMUNICATOR_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>  // NOLINT: the worker
#include <vector>

#include "collectives/nccl/abi.h"
#include "tests/gpu/simulated/nccl/mesh.h"
#include "tests/gpu/simulated/nccl/operation.h"

namespace simulated_gpu {

using hvd::collectives::nccl::CudaStream;
using hvd::collectives::nccl::NcclResult;

// Thread-safe. What NCCL does in the background of a non-blocking communicator, its worker's thread
// does: it connects, it puts kernels onto streams, and it finalizes. A kernel whose peer is gone
// hangs until the communicator is aborted, as NCCL's do.
class Communicator : public std::enable_shared_from_this<Communicator> {
 public:
  // `name` is the unique id's. The current device is the rank's.
  Communicator(const std::string& name, int rank, int size, int device);
  ~Communicator();

  void StartConnecting();
  void Launch(std::vector<Operation> operations, CudaStream* stream);
  void StartFinalizing();

  // The first error; otherwise kInProgress or kSuccess.
  NcclResult state();
  // Waits until it is not kInProgress.
  NcclResult AwaitState();
  // Ends all that is under way, and waits for the end: nothing uses a caller's memory any more.
  void Abort();
  // Waits for the kernels, then as Abort().
  void Destroy();

  int rank() const { return mesh_.rank(); }
  int size() const { return mesh_.size(); }
  int device() const { return device_; }

  // Operators that multiply; `factor` is a value of the operation's type.
  NcclOp MakeOp(std::vector<char> factor);
  bool DropOp(NcclOp op);
  // Puts the operator's factor into `operation`, and its arithmetic. Whether there is such an
  // operator.
  bool Resolve(Operation* operation);

 private:
  void Do(std::function<void()> job);
  void Work();
  void Connect();
  void RunKernel(uint64_t turn, const std::vector<Operation>& operations);
  void Fail(NcclResult why, const std::string& text);
  void FailBy(Mesh::Outcome outcome);

  const int device_;
  Mesh mesh_;
  std::thread worker_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  int unfinished_jobs_ = 0;
  bool stops_ = false;
  NcclResult error_ = NcclResult::kSuccess;
  uint64_t launched_ = 0;  // kernels; each has its turn, whatever its stream
  uint64_t ended_ = 0;
  bool kernel_runs_ = false;
  std::map<int, std::vector<char>> factors_;  // by operator
  int next_op_ = 5;
};

// The text of the last error of this process.
void SetLastError(const std::string& text);
const char* LastError();

}  // namespace simulated_gpu

#endif  // TESTS_GPU_SIMULATED_NCCL_COMMUNICATOR_H_
