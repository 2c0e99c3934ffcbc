// The collective engine of one rank: a background thread that takes tensors from user threads,
// negotiates with the other ranks which of them to run in which order, and runs them.
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
  // How long new operations that no thread waits for may be held back, so that more of them are
  // announced and fused together.
  absl::Duration gather_time = absl::ZeroDuration();
  absl::Duration collective_timeout = absl::Seconds(30);
  int local_rank = 0;
  // Connects the ranks' devices at the first tensor on a device. Empty: such tensors fail.
  DeviceConnector connect_devices;

  // The fields from here to on_stall are used on rank 0 only.
  // Operations fail when every rank has been blocked for this long on one that the others have not
  // submitted.
  absl::Duration deadlock_time = absl::Seconds(5);
  // Autotuning of the fusion threshold and cycle time; nullopt: the values in `settings` are used
  // throughout.
  std::optional<negotiation::tuning::TunerOptions> tuner;
  // Receives each measurement of the autotuner; called on the engine's thread. May be empty.
  std::function<void(const negotiation::tuning::TuningSample&)> on_tuning_sample;
  // Receives reports of stalled operations; called on the engine's thread. If `report.give_up` is
  // set, the callee must abort the engine. Empty: the engine aborts itself, and reports nothing.
  std::function<void(const negotiation::StallReport&)> on_stall;
  // Receives warnings for the user; called on the engine's thread. Empty: they are dropped.
  std::function<void(const std::string&)> on_warning;

  // Added to errors and warnings that name ranks, e.g. " (of process set 1, ranks 2 and 3 of the
  // world)". Empty: the ranks are the world's.
  std::string ranks_note;

  // Called on the engine's thread when the epoch has ended, before the operations in flight fail.
  // `left`: it ended cleanly, by a rank's Shutdown(). `unreached`: the rank that this one found the
  // network not to reach. Must not destroy the engine. May be empty.
  std::function<void(const absl::Status& why, bool left, std::optional<int> unreached)> on_end;

  // Records the engine's activities; nullptr: they are not recorded. The engines of one process
  // share one recorder.
  std::shared_ptr<timeline::Recorder> recorder;
  int process_set = 0;  // the process set whose operations this engine runs, for the recorder
  // Called on the engine's thread after a plan has started or stopped the timeline. May be empty.
  std::function<void(const negotiation::TimelineOrder&)> on_timeline_order;

  // Called on the engine's thread when the result of a commit says that the world is about to
  // change, before the commit's handle is done. May be empty.
  std::function<void()> on_world_changing;
};

// Owns one thread, which sleeps until there is work. Thread-safe. The communicator is borrowed and
// must live until Shutdown() has returned; after that the engine uses neither it nor a socket, but
// handles and their results stay valid.
//
// Once the epoch is broken (a peer is gone, a collective failed, Abort) every handle in flight and
// every later Submit fails with the same status; a new world needs a new engine. A mismatch between
// ranks fails only that operation, on all ranks.
class Engine {
 public:
  using Handle = OperationPtr;

  // `control` connects this rank to the others; see control_channel.h.
  static std::unique_ptr<Engine> Start(const EngineOptions& options,
                                       collectives::Communicator& communicator,
                                       std::unique_ptr<control::ControlChannel> control);
  // Calls Shutdown() if it was not called before.
  virtual ~Engine() = default;

  // Submits one tensor, or several that are negotiated as one: all or none of them become ready.
  // `waits`: the caller is about to call Wait and may run the engine's rounds there, so the
  // engine's thread is not woken.
  // Errors:
  //   - AlreadyExists: a request of that name is in flight.
  //   - InvalidArgument: a bad request; nothing was queued.
  //   - Unavailable, Aborted, DeadlineExceeded: the epoch is broken.
  virtual absl::StatusOr<Handle> Submit(std::vector<negotiation::SignaturePtr> signatures,
                                        std::vector<TensorMemory> memory, bool waits) = 0;
  absl::StatusOr<Handle> Submit(std::vector<TensorRequest> requests);

  // Submits like Submit, and calls then(handle) once, when the handle is done; handle->status says
  // whether the operation failed. If SubmitThen itself returns an error, `then` is never called.
  // `then` runs on the engine's thread, or on a thread that runs the engine's rounds in Wait. It
  // must neither block nor call the engine.
  //
  // The operation is announced at once, without gather_time, as if a thread waited for it. The
  // deadlock detection (deadlock_time) does not count it as a blocked wait.
  // Errors:
  //   - FailedPrecondition: this is a forked child; the engine belongs to its parent.
  //   - All errors of Submit.
  virtual absl::Status SubmitThen(std::vector<negotiation::SignaturePtr> signatures,
                                  std::vector<TensorMemory> memory,
                                  std::function<void(Handle)> then) = 0;

  // Blocks until all tensors of the handle are done. If it returns OK, handle->results holds one
  // result for each tensor. Borrowed memory must live until it returns.
  // Errors:
  //   - InvalidArgument: the ranks' requests do not match; the message says which rank sent what.
  //     The engine stays usable.
  //   - Unimplemented: no backend can do this.
  //   - Unavailable, Aborted, DeadlineExceeded, Internal: the epoch is broken.
  virtual absl::Status Wait(const Handle& handle) = 0;

  // Waits like Wait, but for `most` and about a second at most, or until this thread takes a
  // signal. Returns whether the handle is done; if so, handle->status is its result. A caller whose
  // `most` is less than a second may never come back.
  virtual bool WaitAWhile(const Handle& handle, absl::Duration most) = 0;

  // Leaves the world cleanly: notifies the peers, fails the operations in flight on all ranks ("has
  // been shut down") and joins the thread.
  virtual void Shutdown() = 0;

  // On rank 0: makes all ranks start recording into `file` at the same point of their plans, or
  // stop recording (nullptr, and order.records false). The file is closed when the events of all
  // ranks have arrived or the epoch has ended. Does not block.
  virtual void OrderTimeline(negotiation::TimelineOrder order,
                             std::shared_ptr<timeline::TraceFile> file) = 0;

  // From now on the result of every commit, on all ranks, has world_is_changing set. One rank's
  // call is enough. Does not block.
  virtual void SetWorldChanging() = 0;

  // Breaks the epoch with this reason. Does not block.
  virtual void Abort(absl::Status reason) = 0;
};

}  // namespace hvd::worker_runtime::engine

#endif  // WORKER_RUNTIME_ENGINE_ENGINE_H_
