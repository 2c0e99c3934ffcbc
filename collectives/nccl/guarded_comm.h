// A NCCL communicator with its stream, guarded against all that may end it: deadlines, errors of
// NCCL's own threads, Abort from other threads, and its owner's leaving.
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

// The time limits of an ending.
struct NcclBounds {
  // A NCCL call that doesn't return for this long after its operation's deadline, or after another
  // error, is stuck; the communicator is aborted during the call.
  absl::Duration stuck_call = absl::Seconds(1);
  // The limit for outstanding messages to peers when a rank leaves cleanly.
  absl::Duration finalize = absl::Seconds(2);
  // The wait for NCCL to release a communicator. What takes longer goes on in the background.
  absl::Duration close = absl::Seconds(5);
};

// The identity of the new communicator.
struct NcclPlace {
  NcclUniqueId id;
  int rank = 0;
  int size = 1;
};

// Operations come from one thread at a time; Break may be called from any thread at any time.
// NCCL's own calls that end a communicator may block without limit. So a separate thread, the
// closer, makes them and shares the ownership.
class NcclSession : public std::enable_shared_from_this<NcclSession> {
 public:
  // Waits for all ranks. `libraries` must never be destroyed.
  // Errors:
  //   - DeadlineExceeded, Unavailable, Internal: the connecting failed.
  //   - The cancellation's status: it was cancelled, if there is a cancellation.
  static absl::StatusOr<std::shared_ptr<NcclSession>> Connect(const GpuLibraries& libraries,
                                                              std::unique_ptr<DeviceStream> stream,
                                                              const NcclPlace& place,
                                                              const NcclBounds& limits,
                                                              const WaitBounds& bounds);

  // Runs one operation: `enqueue` puts its work onto the stream, by Group and OnStream; then waits
  // until the stream has done it. A failure breaks the session; `explain` makes its status. Returns
  // the first error of the session.
  absl::Status Run(absl::Duration timeout, absl::FunctionRef<absl::Status()> enqueue,
                   absl::FunctionRef<absl::Status(const absl::Status&)> explain);

  // Within `enqueue`: calls NCCL several times, as one group.
  absl::Status Group(absl::FunctionRef<NcclResult(NcclComm*, CudaStream*)> body);
  // Within `enqueue`: uses the stream.
  absl::Status OnStream(absl::FunctionRef<absl::Status(DeviceStream&)> body);
  // Within `enqueue`: waits until the stream has done all so far.
  absl::Status Synchronize();

  // Calls NCCL once, with the communicator; at any time on the operations' thread.
  absl::Status Call(absl::string_view what, absl::FunctionRef<NcclResult(NcclComm*)> call);

  // From now on everything fails with `why`, or an earlier error, and soon. Does not block.
  void Break(const absl::Status& why);

  // Leaves cleanly if there was no error. Bounded. Must be the last call.
  void Close();

 private:
  NcclSession(const GpuLibraries& libraries, std::unique_ptr<DeviceStream> stream,
              const NcclBounds& limits)
      : nccl_(libraries.nccl), limits_(limits), stream_(std::move(stream)) {}

  absl::Status Initialize(const NcclPlace& place, const WaitBounds& bounds);
  // Asks NCCL for the communicator; on a separate thread, since it may wait for all ranks.
  void MakeCommunicator(const NcclPlace& place);
  NcclComm* comm() const { return comm_.load(std::memory_order_acquire); }
  // Breaks if a call does not return in time. Runs on a separate thread, since some calls return
  // only when their communicator is aborted.
  void WatchCalls();
  // Whether there is a stuck call; false: the session is over.
  bool AwaitStuckCall();
  // Uses communicator or stream, which can't be freed meanwhile. Returns the first error if it
  // can't.
  absl::Status Touch(absl::FunctionRef<absl::Status()> use);
  absl::Status Check(NcclResult result, absl::string_view what) const;
  // Whether NCCL has nothing pending that concerns the communicator.
  absl::StatusOr<bool> Settled();
  absl::Status AwaitSettled(absl::Time deadline, const Cancellation* cancellation);
  // Polls `done`.
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
  // Written by NCCL, maybe long before the call that makes it returns: an abort needs it by then.
  // Used in the same way as the stream.
  std::atomic<NcclComm*> comm_{nullptr};
  // Used by the operations' thread within Touch, then by the closer.
  std::unique_ptr<DeviceStream> stream_;
  absl::Time deadline_;  // of the running operation

  absl::Mutex mutex_;
  NcclLife life_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> made_ ABSL_GUARDED_BY(mutex_);  // the communicator, or the error
  // A call that has not returned by then is stuck.
  absl::Time return_by_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
};

}  // namespace hvd::collectives::nccl

#endif  // COLLECTIVES_NCCL_GUARDED_COMM_H_
