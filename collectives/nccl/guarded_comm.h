// A NCCL communicator with its stream whose calls always return: operations are bounded by
// deadlines, and a stuck or failed communicator is aborted.
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

// The time limits for ending a communicator.
struct NcclBounds {
  // A NCCL call that has not returned this long after its operation's deadline, or after another
  // error, counts as stuck; the communicator is aborted during the call.
  absl::Duration stuck_call = absl::Seconds(1);
  // The limit for sending outstanding messages to peers when a rank leaves cleanly.
  absl::Duration finalize = absl::Seconds(2);
  // The limit of the wait for NCCL to free a communicator. After it, NCCL continues in the
  // background.
  absl::Duration close = absl::Seconds(5);
};

// The identity of the new communicator.
struct NcclPlace {
  NcclUniqueId id;
  int rank = 0;
  int size = 1;
};

// One thread at a time may call operations; Break may be called from any thread at any time. The
// NCCL calls that end a communicator may block without limit, so a separate thread, the closer,
// makes them. It shares the ownership of this object.
class GuardedComm : public std::enable_shared_from_this<GuardedComm> {
 public:
  // Makes the communicator; blocks until all ranks are connected. `libraries` must never be
  // destroyed.
  // Errors:
  //   - DeadlineExceeded: not all ranks were connected in time.
  //   - Unavailable, Internal: as FromNccl.
  //   - The cancellation's status: it was cancelled.
  static absl::StatusOr<std::shared_ptr<GuardedComm>> Connect(const GpuLibraries& libraries,
                                                              std::unique_ptr<DeviceStream> stream,
                                                              const NcclPlace& place,
                                                              const NcclBounds& limits,
                                                              const WaitBounds& bounds);

  // Runs one operation: calls `enqueue`, which puts its work onto the stream by Group and OnStream,
  // and waits until the stream has done it. An error, as rewritten by `explain`, breaks the
  // communicator. Returns its first error.
  absl::Status Run(absl::Duration timeout, absl::FunctionRef<absl::Status()> enqueue,
                   absl::FunctionRef<absl::Status(const absl::Status&)> explain);

  // Within `enqueue`: calls NCCL several times, as one group.
  absl::Status Group(absl::FunctionRef<NcclResult(NcclComm*, CudaStream*)> body);
  // Within `enqueue`: uses the stream.
  absl::Status OnStream(absl::FunctionRef<absl::Status(DeviceStream&)> body);
  // Within `enqueue`: waits until the stream has done all work so far.
  absl::Status Synchronize();

  // Makes the NCCL call named `what`. On the operations' thread, also outside of `enqueue`.
  absl::Status Call(absl::string_view what, absl::FunctionRef<NcclResult(NcclComm*)> call);

  // Makes the current operation and all later ones fail soon, with `why` or an earlier error. Does
  // not block.
  void Break(const absl::Status& why);

  // Ends the communicator, cleanly if there was no error. The wait is bounded. Must be the last
  // call.
  void Close();

 private:
  GuardedComm(const GpuLibraries& libraries, std::unique_ptr<DeviceStream> stream,
              const NcclBounds& limits)
      : nccl_(libraries.nccl), limits_(limits), stream_(std::move(stream)) {}

  absl::Status Initialize(const NcclPlace& place, const WaitBounds& bounds);
  // Makes the communicator. Runs on a separate thread, since NCCL may block until all ranks come.
  void MakeCommunicator(const NcclPlace& place);
  NcclComm* comm() const { return comm_.load(std::memory_order_acquire); }
  // The watchdog's thread: breaks the communicator if a NCCL call does not return in time. Some
  // calls return only when their communicator is aborted.
  void WatchCalls();
  // Blocks until a call is stuck (true) or the communicator is closed (false).
  bool AwaitStuckCall();
  // Calls `use` between EnterCall and LeaveCall, so that communicator and stream are not freed
  // meanwhile. Returns its first error if they can't be used any more.
  absl::Status Touch(absl::FunctionRef<absl::Status()> use);
  absl::Status Check(NcclResult result, absl::string_view what) const;
  // Whether NCCL's asynchronous work for the communicator is complete (not kInProgress).
  absl::StatusOr<bool> Settled();
  absl::Status AwaitSettled(absl::Time deadline, const Cancellation* cancellation);
  // Polls `done` until it returns true, an error, or the wait is over.
  absl::Status Poll(absl::Time deadline, const Cancellation* cancellation,
                    absl::FunctionRef<absl::StatusOr<bool>()> done);
  // Sleeps for `time`, or until the communicator breaks.
  void Pause(absl::Duration time);
  // Breaks the communicator, waits until it is closed, returns its first error.
  absl::Status Fail(const absl::Status& why);

  void StartCloser(bool gently);
  // The closer's thread.
  void End(bool gently);
  bool EndGently(NcclComm* comm);
  void AwaitClosed();
  bool AwaitNoCall();

  const NcclFunctions& nccl_;
  const NcclBounds limits_;
  // Written by NCCL, perhaps long before the call that makes the communicator returns: an abort
  // during that call needs it. Otherwise used by the same threads as stream_.
  std::atomic<NcclComm*> comm_{nullptr};
  // Used by the operations' thread within Touch, then by the closer.
  std::unique_ptr<DeviceStream> stream_;
  absl::Time deadline_;  // of the running operation

  absl::Mutex mutex_;
  CommState state_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> made_ ABSL_GUARDED_BY(mutex_);  // the result of MakeCommunicator
  // A NCCL call that has not returned by this time is stuck.
  absl::Time return_by_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
};

}  // namespace hvd::collectives::nccl

#endif  // COLLECTIVES_NCCL_GUARDED_COMM_H_
