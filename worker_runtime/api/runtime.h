// The composition root of a worker: connects session, backend, control channel and engine, one set
// of them per world.
#ifndef WORKER_RUNTIME_API_RUNTIME_H_
#define WORKER_RUNTIME_API_RUNTIME_H_

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "base/fd.h"
#include "base/settings/runtime_env.h"
#include "base/task_thread.h"
#include "collectives/backend.h"
#include "worker_runtime/api/active_world.h"
#include "worker_runtime/api/training_progress.h"
#include "worker_runtime/commit_store/commit_arena.h"
#include "worker_runtime/engine/engine.h"
#include "worker_runtime/session/rendezvous_session.h"

namespace hvd::worker_runtime::api {

// The error of calls that need Init first.
absl::Status NotInitializedError();

// The error of a worker that is no longer wanted and is to exit with 0.
absl::Status ReleasedError(absl::string_view reason);
bool IsReleased(const absl::Status& status);

// Thread-safe. Handles are numbered over all worlds of the process, so that an old one is never
// mistaken for a new one.
class Runtime {
 public:
  using Handle = int64_t;
  static constexpr Handle kFirstHandle = 1000;  // larger than any status code

  Runtime() = default;
  // For tests: with the values that Init would get from the environment and the agent. `session`
  // may be nullptr: a worker without a daemon.
  Runtime(settings::RuntimeEnv env, std::shared_ptr<session::Session> session,
          std::unique_ptr<collectives::Backend> backend);

  // See hvd_init.
  // Errors: those of joining and connecting, and
  //   - InvalidArgument: an environment variable has a bad value.
  //   - IsReleased: this worker is no longer wanted.
  absl::Status Init();
  // See hvd_join_world.
  // Errors: those of Init, and
  //   - FailedPrecondition: not initialized.
  absl::Status JoinWorld();
  // See hvd_reset.
  // Errors: those of Init.
  absl::Status Reset();
  // See hvd_shutdown.
  // Errors: those of Session::ReportFinished, and
  //   - FailedPrecondition: called by a callback.
  absl::Status Shutdown();

  // See hvd_set_commit.
  void SetCommit(uint64_t number);
  // See hvd_begin_training, hvd_count_step and hvd_note_error.
  void BeginTraining() { progress_.BeginTraining(); }
  void CountStep() { progress_.CountStep(); }
  void NoteError(const std::string& text) { progress_.NoteError(text); }
  // Records that an operation was completed.
  void NoteWork() { progress_.NoteWork(); }
  // See hvd_check_world and hvd_confirm_world.
  absl::Status CheckWorld();
  absl::Status ConfirmWorld();

  // The store in which this worker's commits outlive it, with those of its predecessors; nullptr:
  // there is none. Borrowed; available from Init on, another one in another job.
  commit_store::CommitArena* store() const;

  // Makes the copy of another host's commit that the agent keeps the store's newest one.
  // Errors:
  //   - NotFound: there is none that is newer; also without a store.
  //   - ResourceExhausted: there is not enough memory.
  absl::Status TakeKeptCommit() ABSL_LOCKS_EXCLUDED(mutex_);

  // The job's id, available from Init on; "" in a process without an agent.
  std::string job_id() const;

  // The agent's request for this process's Python stack: write it to `fd` on `signal`. Available
  // from Init on. The descriptor stays open.
  struct StackRequest {
    int fd = -1;
    int signal = 0;
  };
  std::optional<StackRequest> stack_request() const;

  // The world that is up, or nullptr.
  std::shared_ptr<ActiveWorld> active() const;

  // The place of this process, or its future place before it has joined; nullopt: not initialized.
  std::optional<rendezvous::placement::Placement> place() const;
  // Whether it has a place but is in no world yet.
  bool is_deferred() const;

  // A submitted operation and its engine.
  struct Pending {
    std::shared_ptr<engine::Engine> engine;
    engine::Engine::Handle operation;

    absl::Status Wait() const { return engine->Wait(operation); }
    bool WaitAWhile() const { return engine->WaitAWhile(operation); }
  };

  // Engine::Submit on the world that is up, or on one of its process sets (see
  // ProcessSets::Prepare). Joins first if that was deferred. `waits`: Wait follows at once.
  // Errors:
  //   - FailedPrecondition: there is no world.
  absl::StatusOr<Pending> Start(std::vector<negotiation::SignaturePtr> signatures,
                                std::vector<engine::TensorMemory> memory, int32_t process_set,
                                bool waits);

  // The same, under a number that is valid until it is released. `waits`: first waits a while for
  // it.
  absl::StatusOr<Handle> Submit(std::vector<negotiation::SignaturePtr> signatures,
                                std::vector<engine::TensorMemory> memory, int32_t process_set,
                                bool waits = false);
  absl::StatusOr<Handle> Submit(std::vector<engine::TensorRequest> requests,
                                int32_t process_set = 0, bool waits = false);
  // See hvd_submit_then. `done` gets the handle, which the callee must release, and the status of
  // the operation.
  // Errors: those of Start, and the following; `done` is never called then.
  //   - FailedPrecondition: this is a forked child of the process that is in the world.
  using Done = std::function<void(Handle, const absl::Status&)>;
  absl::Status SubmitThen(std::vector<engine::TensorRequest> requests, int32_t process_set,
                          Done done);
  // Whether Wait would return at once.
  // Errors:
  //   - NotFound: no such handle.
  absl::StatusOr<bool> Poll(Handle handle);
  // See Engine::Wait.
  // Errors: those of Engine::Wait, and
  //   - NotFound: no such handle.
  absl::Status Wait(Handle handle);
  // See Engine::WaitAWhile.
  // Errors:
  //   - NotFound: no such handle.
  absl::StatusOr<bool> WaitAWhile(Handle handle);
  // Makes a handle for a result of Start.
  Handle Keep(Pending pending);
  // One entry per tensor; valid until Release. REQUIRES: Wait(handle) returned OK.
  absl::StatusOr<const std::vector<engine::TensorResult>*> Results(Handle handle);
  // Waits for all of them, and forgets them.
  // Errors: the first one in their order, of those of Wait.
  absl::Status Finish(absl::Span<const Handle> handles);
  // The same for one. Unknown handles are ignored.
  void Release(Handle handle) { Finish({&handle, 1}).IgnoreError(); }

  // See hvd_start_timeline and hvd_stop_timeline.
  absl::Status StartTimeline(const std::string& path, bool mark_cycles);
  absl::Status StopTimeline();

  // See hvd_report_failure.
  void ReportFailure(const std::string& message, bool caused_by_peer);

  // Whether requests may name a CUDA device: there is a driver, and the environment doesn't forbid
  // it. False before the first Init.
  bool TakesDeviceTensors();

 private:
  // The first time: reads the environment and contacts the agent.
  absl::Status Prepare() ABSL_EXCLUSIVE_LOCKS_REQUIRED(init_mutex_);
  absl::Status ReadVariablesAgain() ABSL_EXCLUSIVE_LOCKS_REQUIRED(init_mutex_);
  // The next Prepare is the first of another job.
  void ForgetJob() ABSL_EXCLUSIVE_LOCKS_REQUIRED(init_mutex_);
  absl::Status MeetAgent() ABSL_EXCLUSIVE_LOCKS_REQUIRED(init_mutex_);
  // Asks for the next world until one is connected. Makes it, or the place that was given instead,
  // the current one.
  absl::Status Join(bool may_defer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(init_mutex_);
  absl::StatusOr<session::JoinAnswer> Ask(const control::ControlListener& listener, bool may_defer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(init_mutex_);
  void KeepTimeline(const ActiveWorld& world) ABSL_EXCLUSIVE_LOCKS_REQUIRED(init_mutex_);
  // Shutdown, without the callbacks of operations in flight.
  absl::Status LeaveForGood();
  // The world's engine or that of one of its process sets; see Start.
  absl::StatusOr<std::shared_ptr<engine::Engine>> PrepareEngine(
      int32_t process_set, std::vector<negotiation::SignaturePtr>& signatures);
  // Makes the thread if this process has none.
  TaskThread& StartCallbacks();
  // nullptr if this process has none.
  TaskThread* callbacks() const;
  // Removes the active world and returns it.
  std::shared_ptr<ActiveWorld> TakeActive();
  absl::StatusOr<Pending> Find(Handle handle) const;
  absl::StatusOr<Pending> Take(Handle handle);
  std::shared_ptr<session::Session> session() const;

  // Held while a world is made or left, which blocks; `mutex_` is never held that long.
  absl::Mutex init_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  bool prepared_ ABSL_GUARDED_BY(init_mutex_) = false;
  bool was_read_ ABSL_GUARDED_BY(init_mutex_) = false;  // env_ is the process's environment
  settings::RuntimeEnv env_ ABSL_GUARDED_BY(init_mutex_);
  uint64_t lone_epoch_ ABSL_GUARDED_BY(init_mutex_) = 0;
  absl::Status released_ ABSL_GUARDED_BY(init_mutex_);  // for this job, once it is not OK
  std::unique_ptr<collectives::Backend> backend_ ABSL_GUARDED_BY(init_mutex_);
  // nullptr: the runtime does not handle device tensors
  std::shared_ptr<collectives::DeviceBackend> devices_ ABSL_GUARDED_BY(init_mutex_);

  TrainingProgress progress_;
  std::atomic<bool> left_well_{false};  // the newest world, and the daemon knows

  mutable absl::Mutex mutex_;
  // The thread that calls callbacks; made at the first one. Before the worlds, whose operations use
  // it.
  std::unique_ptr<TaskThread> callbacks_ ABSL_GUARDED_BY(mutex_);
  // Made once in a job; stays. nullptr in a process without an agent.
  std::shared_ptr<session::Session> session_ ABSL_GUARDED_BY(mutex_);
  std::string job_id_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<commit_store::CommitArena> store_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<commit_store::ArenaView> kept_ ABSL_GUARDED_BY(mutex_);  // null: none
  // Of earlier jobs: what was restored from them may be in use.
  std::vector<std::unique_ptr<commit_store::CommitArena>> old_stores_ ABSL_GUARDED_BY(mutex_);
  Fd stack_pipe_ ABSL_GUARDED_BY(mutex_);
  int stack_signal_ ABSL_GUARDED_BY(mutex_) = 0;
  std::shared_ptr<ActiveWorld> active_ ABSL_GUARDED_BY(mutex_);
  std::optional<rendezvous::placement::Placement> place_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<Handle, Pending> pending_ ABSL_GUARDED_BY(mutex_);
  Handle next_handle_ ABSL_GUARDED_BY(mutex_) = kFirstHandle;
};

}  // namespace hvd::worker_runtime::api

#endif  // WORKER_RUNTIME_API_RUNTIME_H_
