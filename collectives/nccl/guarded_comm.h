// One NCCL communicator with its stream, and all that may end it: deadlines, errors of NCCL's own
// threads, Abort from elsewhere, and its owner's leaving.
#ifndef COLLECTIVES_NCCL_GUARDED_COMM_H_
#define COLLECTIVES_NCCL_GUARDED_COMM_H_

#include <atomic>
#include <memory>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/cancellation.h"
#include "collectives/nccl/comm_state.h"
#include "collectives/nccl/device_stream.h"
#include "collectives/nccl/library.h"

namespace hvd::collectives::nccl {

// How long an ending may take.
struct NcclBounds {
  // A call of NCCL that doesn't return for so long after its operation's time, or after something
  // else went wrong, is stuck, and the communicator is aborted while it is under way.
  absl::Duration stuck_call = absl::Seconds(1);
  // What is still on its way to peers when a rank leaves in order may take so long.
  absl::Duration finalize = absl::Seconds(2);
  // So long is waited for NCCL to let go of a communicator. What takes longer goes on in the
  // background.
  absl::Duration close = absl::Seconds(5);
};

// Which communicator it is to become.
struct NcclPlace {
  NcclUniqueId id;
  int rank = 0;
  int size = 1;
};

// Operations come from one thread at a time; Break may be called from any thread at any time.
// NCCL's own calls to end a communicator may block for ever, so a thread of their own, the closer,
// makes them, and shares the ownership.
class NcclSession : public std::enable_shared_from_this<NcclSession> {
 public:
  // Waits for all ranks. `libraries` must live for ever.   DeadlineExceeded, Unavailable, Internal,
  // and the cancellation's status, if it has one.
  static absl::StatusOr<std::shared_ptr<NcclSession>> Connect(const GpuLibraries& libraries,
                                                              std::unique_ptr<DeviceStream> stream,
                                                              const NcclPlace& place,
                                                              const NcclBounds& limits,
                                                              const WaitBounds& bounds);

  // Runs one operation: `enqueue` puts its work onto the stream, by Group and OnStream; then waits
  // until the stream has done it. What goes wrong breaks the session; `explain` makes the status of
  // it. Returns the first thing that went wrong, ever.
  absl::Status Run(absl::Duration timeout, absl::FunctionRef<absl::Status()> enqueue,
                   absl::FunctionRef<absl::Status(const absl::Status&)> explain);

  // Within `enqueue`: calls NCCL several times, as one group.
  absl::Status Group(absl::FunctionRef<NcclResult(NcclComm*, CudaStream*)> body);
  // Within `enqueue`: uses the stream.
  absl::Status OnStream(absl::FunctionRef<absl::Status(DeviceStream&)> body);
  // Within `enqueue`: waits until the stream has done all so far.
  absl::Status Synchronize();

  // Calls NCCL once, with the communicator; at any time from the operations' thread.
  absl::Status Call(absl::string_view what, absl::FunctionRef<NcclResult(NcclComm*)> call);

  // From now on everything fails with `why`, or what was first, and soon. Does not block.
  void Break(const absl::Status& why);

  // Leaves in order if all is well. Bounded. Must be the last call.
  void Close();

 private:
  NcclSession(const GpuLibraries& libraries, std::unique_ptr<DeviceStream> stream,
              const NcclBounds& limits)
      : nccl_(libraries.nccl), limits_(limits), stream_(std::move(stream)) {}

  absl::Status Initialize(const NcclPlace& place, const WaitBounds& bounds);
  // Asks NCCL for the communicator; on a thread of its own, since it may wait for all ranks.
  void MakeCommunicator(const NcclPlace& place);
  NcclComm* comm() const { return comm_.load(std::memory_order_acquire); }
  // Breaks if a call does not return in time. The work of a thread of its own, for calls that
  // return only when their communicator is aborted.
  void WatchCalls();
  // Whether there is one; false: the session is over.
  bool AwaitStuckCall();
  // Uses communicator or stream, which can't be freed meanwhile.   The first reason why not.
  absl::Status Touch(absl::FunctionRef<absl::Status()> use);
  absl::Status Check(NcclResult result, absl::string_view what) const;
  // Whether NCCL has nothing pending that concerns the communicator.
  absl::StatusOr<bool> Settled();
  absl::Status AwaitSettled(absl::Time deadline, const Cancellation* cancellation);
  // Asks `done` again and again.
  absl::Status Poll(absl::Time deadline, const Cancellation* cancellation,
                    absl::FunctionRef<absl::StatusOr<bool>()> done);
  // Ends early when the session breaks.
  void Pause(absl::Duration time);
  // Breaks, waits for that, returns the first reason.
  absl::Status Fail(const absl::Status& why);

  void StartCloser(bool gently);
  // The closer's work.
  void End(bool gently);
  bool EndGently(NcclComm* comm);
  void AwaitClosed();
  bool AwaitNoCall();

  const NcclFunctions& nccl_;
  const NcclBounds limits_;
  // Written by NCCL, maybe long before the call that makes it returns: whoever aborts it has to
  // have it by then. Used as the stream.
  std::atomic<NcclComm*> comm_{nullptr};
  // Used by the operations' thread within Touch, by the closer when that is over.
  std::unique_ptr<DeviceStream> stream_;
  absl::Time deadline_;  // of the running operation

  absl::Mutex mutex_;
  NcclLife life_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> made_ ABSL_GUARDED_BY(mutex_);  // the communicator, or why not
  // A call that has not returned by then is stuck.
  absl::Time return_by_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
};

}  // namespace hvd::collectives::nccl

#endif  // COLLECTIVES_NCCL_GUARDED_COMM_H_
