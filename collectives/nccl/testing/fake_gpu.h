// A GPU with NCCL in host memory, for tests on machines without: ranks are threads, "device" memory
// is the process's own, and streams do their work in order when it can be done.
#ifndef COLLECTIVES_NCCL_TESTING_FAKE_GPU_H_
#define COLLECTIVES_NCCL_TESTING_FAKE_GPU_H_

#include "collectives/nccl/library.h"

namespace hvd::collectives::nccl {

// All tests of a process share one. Thread-safe.
class FakeGpu {
 public:
  // Never destroyed.
  static const absl::StatusOr<GpuLibraries>& Libraries();

  // What goes wrong from now on; Reset() puts it in order again.
  struct Faults {
    bool calls_block = false;         // whatever the configuration says
    bool init_never_ends = false;     // or until Reset(), if it blocks
    bool init_shows_nothing = false;  // no communicator before it ends
    NcclResult init_error = NcclResult::kSuccess;
    int init_error_rank = -1;           // who gets it; -1: all ranks
    bool operations_never_end = false;  // kernels hang until the communicator is aborted
    bool finalize_never_ends = false;
    bool calls_stay_in_progress = false;            // the group's end has never been reached
    NcclResult async_error = NcclResult::kSuccess;  // of every communicator
    NcclResult call_error = NcclResult::kSuccess;   // of every group's end
    bool group_end_blocks = false;                  // until the communicator is aborted
    bool abort_blocks = false;                      // until Reset()
    bool memory_is_full = false;                    // as long as nothing is freed
  };
  static void Set(const Faults& faults);
  static void Reset() { Set({}); }

  static int communicators();
  // Waits until there are no communicators and no streams.
  static void AwaitNothingLeft();
  // What was called since the last Set(), by the function's name.
  static int calls(const char* function);

  // An event of another stream, and its happening. Kept for ever.
  static CudaEvent* NewEvent();
  static void Happen(CudaEvent* event);
};

}  // namespace hvd::collectives::nccl

#endif  // COLLECTIVES_NCCL_TESTING_FAKE_GPU_H_
