// The shared state of the fake GPU's two halves: its streams, and the groups of NCCL's ranks.
#ifndef COLLECTIVES_NCCL_TESTING_FAKE_WORLD_H_
#define COLLECTIVES_NCCL_TESTING_FAKE_WORLD_H_

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "collectives/nccl/abi.h"
#include "collectives/nccl/testing/fake_gpu.h"

namespace hvd::collectives::nccl {

struct CudaEvent {
  bool happened = true;  // an event that was never recorded counts as happened
  CudaStream* recorded_on = nullptr;
};

// One entry of a stream: `start` is called when everything before it is done, and then `is_done`
// until it is. Both may be empty.
struct FakeWork {
  std::function<void()> start;
  std::function<bool()> is_done;
  bool started = false;
};

struct CudaStream {
  std::deque<FakeWork> work;
  bool awaited = false;  // whether a lazy stream has to work, until it is idle
};

// One rank's call of one operation.
struct FakeLaunch {
  enum Kind { kAllReduce, kBroadcast, kReduce, kAllGather, kReduceScatter, kSend, kReceive };
  Kind kind;
  const void* in = nullptr;
  void* out = nullptr;
  size_t count = 0;
  NcclType type = NcclType::kUint8;
  NcclOp op = NcclOp::kSum;
  double factor = 1.0;
  int root = 0;  // for kSend and kReceive: the peer
  bool done = false;
};
using FakeLaunchPtr = std::shared_ptr<FakeLaunch>;

// The ranks that were connected with the same NcclUniqueId.
struct FakeGroup {
  explicit FakeGroup(int n) : size(n), posted(n) {}

  const int size;
  std::set<int> joined, left, aborted;
  std::vector<size_t> posted;                              // collectives, by rank
  std::map<size_t, std::map<int, FakeLaunchPtr>> meeting;  // by number, then by rank
  std::map<std::pair<int, int>, std::deque<FakeLaunchPtr>> sends, receives;  // by (from, to)
};

struct NcclComm {
  std::shared_ptr<FakeGroup> group;
  int rank = 0;
  std::vector<FakeLaunchPtr> launches;  // not done
  std::map<int, double> factors;        // of the operations it has made
};

struct FakeWorld {
  static FakeWorld& Get();

  // Runs the work of every stream as far as possible, and of lazy streams as far as necessary.
  void Pump() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void Count(const char* function) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) { ++calls[function]; }

  absl::Mutex mutex;
  FakeGpu::Faults faults ABSL_GUARDED_BY(mutex);
  std::map<std::string, int> calls ABSL_GUARDED_BY(mutex);
  std::set<CudaStream*> streams ABSL_GUARDED_BY(mutex);
  int copies ABSL_GUARDED_BY(mutex) = 0;  // between host and device, since the last Set()
  std::map<void*, size_t> pinned ABSL_GUARDED_BY(mutex);
  std::set<NcclComm*> comms ABSL_GUARDED_BY(mutex);
  std::map<std::string, std::shared_ptr<FakeGroup>> groups ABSL_GUARDED_BY(mutex);
  int ids ABSL_GUARDED_BY(mutex) = 0;
};

NcclFunctions FakeNcclFunctions();
CudaFunctions FakeCudaFunctions();

}  // namespace hvd::collectives::nccl

#endif  // COLLECTIVES_NCCL_TESTING_FAKE_WORLD_H_
