// The engine: takes tensors from user threads, negotiates with the other ranks which to run in
// which order, and runs them.
#ifndef WORKER_RUNTIME_ENGINE_ENGINE_H_
#define WORKER_RUNTIME_ENGINE_ENGINE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/settings/runtime_env.h"
#include "collectives/communicator.h"
#include "collectives/types.h"
#include "worker_runtime/control/control_channel.h"
#include "worker_runtime/engine/device_executor.h"
#include "worker_runtime/engine/operation.h"
#include "worker_runtime/engine/request.h"
#include "worker_runtime/negotiation/messages.h"
#include "worker_runtime/negotiation/stall.h"
#include "worker_runtime/negotiation/tuning/tuner.h"
#include "worker_runtime/timeline/recorder.h"
#include "worker_runtime/timeline/trace_file.h"

namespace hvd::worker_runtime::engine {

struct EngineOptions {
  settings::EngineEnv settings;
  // How long what nobody waits for may be kept back so that more goes with it.
  absl::Duration gather_time = absl::ZeroDuration();
  absl::Duration collective_timeout = absl::Seconds(30);
  int local_rank = 0;
  // Connects the ranks' devices when there is a first tensor on one. Empty: such tensors fail.
  DeviceConnector connect_devices;

  // The following count on rank 0, which sees everything.
  // When every rank has been blocked for so long on something that the others have not submitted,
  // these operations fail.
  absl::Duration deadlock_time = absl::Seconds(5);
  // Looks for a better fusion threshold and cycle time than the settings'; nullopt: they stay.
  std::optional<negotiation::tuning::TunerOptions> tuner;
  // Takes what was measured meanwhile; called on the engine's thread. May be empty.
  std::function<void(const negotiation::tuning::TuningSample&)> on_tuning_sample;
  // Takes what is told of such waits; called on the engine's thread. Who is told that it is given
  // up has to break the epoch. Empty: then it breaks by itself, and nothing else is told.
  std::function<void(const negotiation::StallReport&)> on_stall;
  // Takes warnings for people; called on the engine's thread. Empty: they are dropped.
  std::function<void(const std::string&)> on_warning;

  // Added to errors and warnings that name ranks, e.g. " (of process set 1, ranks 2 and 3 of the
  // world)". Empty: the ranks are the world's.
  std::string ranks_note;

  // Called on the engine's thread when the epoch has ended, before what is in flight fails; `left`:
  // in good order, by a rank's Shutdown(). It must not destroy the engine. May be empty.
  std::function<void(const absl::Status& why, bool left)> on_end;

  // Where the engine records what it does; nullptr: nowhere. Engines of one process share one.
  std::shared_ptr<timeline::Recorder> recorder;
  int process_set = 0;  // whose operations they are, for the recorder
  // Called on the engine's thread when the timeline has been ordered to start or to stop. May be
  // empty.
  std::function<void(const negotiation::TimelineOrder&)> on_timeline_order;

  // Called on the engine's thread when a commit tells that the world is about to change, before the
  // commit is done. May be empty.
  std::function<void()> on_world_changing;
};

// Owns one thread, which sleeps until there is work. Thread-safe. The communicator must live until
// Shutdown() has returned; from then on the engine holds only the contents of handles.
//
// Once the epoch is broken (a peer is gone, a collective failed, Abort) every handle in flight and
// every later Submit fails with one and the same status; a new world needs a new engine. A mismatch
// between ranks fails only that operation, on all ranks.
class Engine {
 public:
  using Handle = OperationPtr;

  // `control` connects this rank to the others; see control_channel.h.
  static std::unique_ptr<Engine> Start(const EngineOptions& options,
                                       collectives::Communicator& communicator,
                                       std::unique_ptr<control::ControlChannel> control);
  // Calls Shutdown() if that was not done.
  virtual ~Engine() = default;

  // Submits one tensor, or several that are negotiated as one: all or none of them become ready.
  // `waits`: the caller is about to call Wait, and may do the engine's work there, so that no
  // thread need be woken.
  // Errors:
  //   - AlreadyExists: a request of that name is in flight.
  //   - InvalidArgument: a bad request; nothing was queued.
  //   - Unavailable, Aborted, DeadlineExceeded: the epoch is broken, as described above.
  virtual absl::StatusOr<Handle> Submit(std::vector<negotiation::SignaturePtr> signatures,
                                        std::vector<TensorMemory> memory, bool waits) = 0;
  absl::StatusOr<Handle> Submit(std::vector<TensorRequest> requests);

  // Submit, and then(handle) once the handle is done, with or without error. `then` is called by
  // the thread that does the engine's work: it must not block, nor call the engine. Nothing is held
  // back, as if a thread waited. But it does not count as a wait that keeps this rank from
  // submitting more (see deadlock_time).
  // Errors: those of Submit, and the following; `then` is never called then.
  //   - FailedPrecondition: this is a forked child; the engine is its parent's.
  virtual absl::Status SubmitThen(std::vector<negotiation::SignaturePtr> signatures,
                                  std::vector<TensorMemory> memory,
                                  std::function<void(Handle)> then) = 0;

  // Blocks until all tensors of the handle are done; if it returns OK, handle->results are theirs.
  // Borrowed memory must live until then.
  // Errors:
  //   - InvalidArgument: the ranks' requests do not match; the message says which rank sent what.
  //     The engine stays usable.
  //   - Unimplemented: no backend can do this.
  //   - Unavailable, Aborted, DeadlineExceeded, Internal: the epoch is broken.
  virtual absl::Status Wait(const Handle& handle) = 0;

  // The same for a second or so, or until this thread takes a signal. Returns whether it is done;
  // then handle->status is its result.
  virtual bool WaitAWhile(const Handle& handle) = 0;

  // Leaves cleanly: notifies the peers, fails operations in flight here and there ("has been shut
  // down"), ends the thread.
  virtual void Shutdown() = 0;

  // On rank 0: makes all ranks record from the same point on, for `file`, or stop recording
  // (nullptr, and order.path empty). The file is closed when all ranks' events have arrived or the
  // epoch has ended. Does not block.
  virtual void OrderTimeline(negotiation::TimelineOrder order,
                             std::shared_ptr<timeline::TraceFile> file) = 0;

  // From now on the results of commits, on every rank, say that the world is about to change,
  // whichever rank called this. Does not block.
  virtual void SetWorldChanging() = 0;

  // Breaks the epoch from outside, with this reason. Does not block.
  virtual void Abort(absl::Status reason) = 0;
};

}  // namespace hvd::worker_runtime::engine

#endif  // WORKER_RUNTIME_ENGINE_ENGINE_H_
