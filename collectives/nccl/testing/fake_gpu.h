// A fake GPU with NCCL in host memory, for tests on machines without one: ranks are threads,
// "device" memory is the process's own, and streams run their work in order when it is possible.
#ifndef COLLECTIVES_NCCL_TESTING_FAKE_GPU_H_
#define COLLECTIVES_NCCL_TESTING_FAKE_GPU_H_

#include "collectives/nccl/library.h"

namespace hvd::collectives::nccl {

// All tests of a process share one. Thread-safe.
class FakeGpu {
 public:
  // Never destroyed.
  static const absl::StatusOr<GpuLibraries>& Libraries();

  // Faults from now on; Reset() removes them.
  struct Faults {
    bool calls_block = false;         // whatever the configuration is
    bool init_never_ends = false;     // or until Reset(), if it blocks
    bool init_shows_nothing = false;  // no communicator before it ends
    NcclResult init_error = NcclResult::kSuccess;
    int init_error_rank = -1;           // which rank gets it; -1: all ranks
    bool operations_never_end = false;  // kernels hang until the communicator is aborted
    bool finalize_never_ends = false;
    bool success_is_in_progress = false;            // calls within a group, and ncclCommDestroy
    bool calls_stay_in_progress = false;            // the group's end is never reached
    NcclResult async_error = NcclResult::kSuccess;  // of every communicator
    NcclResult call_error = NcclResult::kSuccess;   // of every group's end
    bool group_end_blocks = false;                  // until the communicator is aborted
    bool abort_blocks = false;                      // until Reset()
    bool memory_is_full = false;                    // as long as nothing is freed
    bool pinning_fails = false;                     // no page-locked memory
    bool registering_fails = false;                 // memory that is there can't be page-locked
    // Streams do their work as late as they may: when something waits for it.
    bool streams_are_lazy = false;
    int failing_copy = 0;  // which copy between host and device is refused, from 1 on; 0: none
  };
  static void Set(const Faults& faults);
  static void Reset() { Set({}); }

  static int communicators();
  // Waits until no communicator and no stream is left.
  static void AwaitNothingLeft();
  // The pieces of work on all streams that are not done yet.
  static size_t pending();
  // The bytes of page-locked memory.
  static size_t pinned();
  // The number of calls of a function since the last Set().
  static int calls(const char* function);

  // Makes an event that has not happened yet, as if from another stream. Never freed.
  static CudaEvent* NewEvent();
  // Makes `event` happen.
  static void Happen(CudaEvent* event);
};

}  // namespace hvd::collectives::nccl

#endif  // COLLECTIVES_NCCL_TESTING_FAKE_GPU_H_
