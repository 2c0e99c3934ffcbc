// The worker's runtime: the composition root that connects session, backend, control channel and
// engine. Each world has its own backend connections, control channel and engine.
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
#include "base/os/liveness_page.h"
#include "base/settings/runtime_env.h"
#include "base/task_thread.h"
#include "collectives/backend.h"
#include "collectives/peer/peer_port.h"
#include "rehearsal/page/fault_page.h"
#include "worker_runtime/api/active_world.h"
#include "worker_runtime/api/training_progress.h"
#include "worker_runtime/commit_store/commit_arena.h"
#include "worker_runtime/engine/engine.h"
#include "worker_runtime/group/process_groups.h"
#include "worker_runtime/group/transfers.h"
#include "worker_runtime/session/rendezvous_session.h"

namespace hvd::worker_runtime::api {

// The error of calls before Init.
absl::Status NotInitializedError();

// The error of a worker that the job no longer needs and that must exit with 0.
absl::Status ReleasedError(absl::string_view reason);
bool IsReleased(const absl::Status& status);

// Thread-safe. Handles are numbered across all worlds of the process, so a handle of an earlier
// world is never mistaken for a newer one.
class Runtime {
 public:
  using Handle = int64_t;
  static constexpr Handle kFirstHandle = 1000;  // larger than any status code

  Runtime() = default;
  // For tests: takes the values that Init would get from the environment and the agent. `session`
  // may be nullptr: a worker without a daemon. `liveness` is a page that this process holds.
  Runtime(settings::RuntimeEnv env, std::shared_ptr<session::Session> session,
          std::unique_ptr<collectives::Backend> backend,
          std::optional<os::LivenessPage> liveness = std::nullopt);

  // See hvd_init.
  // Errors:
  //   - InvalidArgument: an environment variable has a bad value.
  //   - IsReleased(status): the job no longer needs this worker.
  //   - All errors of Session::JoinNextWorld and ActiveWorld::Connect.
  absl::Status Init();
  // See hvd_join_world.
  // Errors:
  //   - FailedPrecondition: not initialized.
  //   - All errors of Init.
  absl::Status JoinWorld();
  // See hvd_set_join.
  void SetJoin(void (*join)()) { join_.store(join); }
  // See hvd_reset.
  // Errors: those of Init.
  absl::Status Reset();
  // See hvd_shutdown.
  // Errors:
  //   - FailedPrecondition: called by a callback.
  //   - All errors of Session::ReportFinished.
  absl::Status Shutdown();

  // See hvd_set_commit.
  void SetCommit(uint64_t number);
  // See hvd_begin_training, hvd_count_step and hvd_note_error.
  void BeginTraining();
  void CountStep() { progress_.CountStep(); }
  void NoteError(const std::string& text, bool caused_by_peer) {
    progress_.NoteError(text, caused_by_peer);
  }
  // Records that an operation was completed.
  void NoteWork() { progress_.NoteWork(); }
  void ForgetWork() { progress_.ForgetWork(); }
  // See hvd_check_world and hvd_confirm_world.
  absl::Status CheckWorld();
  absl::Status ConfirmWorld();
  // Whether a rehearsal says that no checkpoint can be written now; see hvd_disk_is_full.
  bool DiskIsFull() const;
  // See hvd_note_checkpoints.
  void NoteCheckpoints(const session::Session::Checkpoints& checkpoints);

  // The agent-owned commit store, which survives this process and holds the commits of earlier
  // processes of this slot; nullptr: none. Borrowed; available from Init on, replaced when the
  // process takes part in another job.
  commit_store::CommitArena* store() const;

  // Makes the newest commit in the agent's memory the store's newest commit, whichever worker of
  // this host made it, or another host. Errors:
  //   - NotFound: the agent has no newer commit, or there is no store.
  //   - ResourceExhausted: there is not enough memory.
  //   - those of session::FetchNewestCommit.
  absl::Status TakeKeptCommit() ABSL_LOCKS_EXCLUDED(mutex_);

  // The job's id, available from Init on; "" in a process without an agent.
  std::string job_id() const;

  // The agent's request for Python stacks: this process must write its stack to `fd` whenever it
  // gets `signal`. Available from Init on. The descriptor stays open.
  struct StackRequest {
    int fd = -1;
    int signal = 0;
  };
  std::optional<StackRequest> stack_request() const;

  // The current world, or nullptr.
  std::shared_ptr<ActiveWorld> active() const;

  // The placement of this process, provisional until it has joined; nullopt: not initialized.
  std::optional<rendezvous::placement::Placement> place() const;
  // Whether the process is initialized but in no world yet.
  bool is_deferred() const;

  // See hvd_open_group, hvd_abort_group and hvd_close_group.
  absl::StatusOr<int32_t> OpenGroup(const group::ProcessGroupOptions& options, group::Store& store);
  absl::Status AbortGroup(int32_t id, absl::string_view reason);
  absl::Status CloseGroup(int32_t id) { return groups_.Remove(id); }
  // The messenger of a group, which stays as long as the result.
  // Errors:
  //   - InvalidArgument: there is no such group now, or this rank is alone in it.
  absl::StatusOr<std::shared_ptr<group::ProcessGroup>> FindMessaging(int32_t id) const;
  group::Transfers& transfers() { return transfers_; }

  // A submitted operation and its engine.
  struct Pending {
    std::shared_ptr<engine::Engine> engine;
    engine::Engine::Handle operation;

    absl::Status Wait() const { return engine->Wait(operation); }
    bool WaitAWhile(absl::Duration most = absl::InfiniteDuration()) const {
      return engine->WaitAWhile(operation, most);
    }
  };

  // Calls Engine::Submit of the current world, of one of its process sets (see
  // ProcessSets::Prepare), or of a process group. Joins a world first if that was deferred and is
  // needed. `waits`: the caller calls Wait next.
  // Errors:
  //   - FailedPrecondition: there is no world.
  //   - All errors of JoinWorld, ProcessSets::Prepare and Engine::Submit.
  absl::StatusOr<Pending> Start(std::vector<negotiation::SignaturePtr> signatures,
                                std::vector<engine::TensorMemory> memory, int32_t process_set,
                                bool waits);

  // Calls Start and returns a handle, valid until its release. `waits`: first waits for the
  // operation like WaitAWhile.
  // Errors: those of Start.
  absl::StatusOr<Handle> Submit(std::vector<negotiation::SignaturePtr> signatures,
                                std::vector<engine::TensorMemory> memory, int32_t process_set,
                                bool waits = false);
  absl::StatusOr<Handle> Submit(std::vector<engine::TensorRequest> requests,
                                int32_t process_set = 0, bool waits = false);
  // See hvd_submit_then. `done` receives the handle, which the callee must release, and the status
  // of the operation. If SubmitThen itself returns an error, `done` is never called.
  // Errors:
  //   - FailedPrecondition: this is a forked child of the process that is in the world.
  //   - All errors of Start.
  using Done = std::function<void(Handle, const absl::Status&)>;
  absl::Status SubmitThen(std::vector<engine::TensorRequest> requests, int32_t process_set,
                          Done done);
  // Returns whether Wait would return at once.
  // Errors:
  //   - NotFound: no such handle.
  absl::StatusOr<bool> Poll(Handle handle);
  // See Engine::Wait.
  // Errors:
  //   - NotFound: no such handle.
  //   - All errors of Engine::Wait.
  absl::Status Wait(Handle handle);
  // See Engine::WaitAWhile.
  // Errors:
  //   - NotFound: no such handle.
  absl::StatusOr<bool> WaitAWhile(Handle handle, absl::Duration most);
  // Makes a handle for a result of Start.
  Handle Keep(Pending pending);
  // Returns one result per tensor; valid until Release. REQUIRES: Wait(handle) returned OK.
  // Errors:
  //   - NotFound: no such handle.
  absl::StatusOr<const std::vector<engine::TensorResult>*> Results(Handle handle);
  // Waits for all handles and releases them.
  // Errors: those of Wait; the first one, in the order of the handles.
  absl::Status Finish(absl::Span<const Handle> handles);
  // Waits for the operation and releases its handle. An unknown handle is ignored.
  void Release(Handle handle) { Finish({&handle, 1}).IgnoreError(); }

  // See hvd_start_timeline and hvd_stop_timeline.
  absl::Status StartTimeline(const std::string& path, bool mark_cycles);
  absl::Status StopTimeline();

  // See hvd_report_failure.
  void ReportFailure(const std::string& message, bool caused_by_peer, bool ends_job);

  // Returns whether requests may name this CUDA device: there is a driver, and this is the first
  // device for which that was asked. False before the first Init.
  bool TakesDevice(int device);

 private:
  // On the first call in a job: reads the environment and contacts the agent.
  absl::Status Prepare() ABSL_EXCLUSIVE_LOCKS_REQUIRED(init_mutex_);
  absl::Status ReadVariablesAgain() ABSL_EXCLUSIVE_LOCKS_REQUIRED(init_mutex_);
  // Resets the state of the current job; the next Prepare is the first one of another job.
  void ForgetJob() ABSL_EXCLUSIVE_LOCKS_REQUIRED(init_mutex_);
  absl::Status MeetAgent() ABSL_EXCLUSIVE_LOCKS_REQUIRED(init_mutex_);
  // Asks the daemon for the next world and connects to it, again if that fails and the job is
  // elastic. Sets the current world or, if the daemon defers the join, the provisional placement.
  absl::Status Join(bool may_defer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(init_mutex_);
  absl::StatusOr<session::JoinAnswer> Ask(const collectives::peer::PeerPort& port, bool may_defer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(init_mutex_);
  // Tells the agent whether this process would leave the job in disorder if it executed another
  // program now.
  void ShowWhetherBusy(bool busy) ABSL_EXCLUSIVE_LOCKS_REQUIRED(init_mutex_);
  void KeepTimeline(const ActiveWorld& world) ABSL_EXCLUSIVE_LOCKS_REQUIRED(init_mutex_);
  // Shutdown without waiting for callbacks.
  absl::Status LeaveForGood();
  // The daemon's part of LeaveForGood.
  absl::Status TellLeft(const ActiveWorld* world) ABSL_EXCLUSIVE_LOCKS_REQUIRED(init_mutex_);
  // Returns the engine of the world or of one of its process sets; see Start.
  absl::StatusOr<std::shared_ptr<engine::Engine>> PrepareEngine(
      int32_t process_set, std::vector<negotiation::SignaturePtr>& signatures);
  // Joins the world that was deferred, by what SetJoin has set.
  absl::Status JoinForOperation();
  // Returns the callback thread of this process; starts it if there is none.
  TaskThread& StartCallbacks();
  // Returns the callback thread, or nullptr if this process has none.
  TaskThread* callbacks() const;
  // Removes the active world and returns it.
  std::shared_ptr<ActiveWorld> TakeActive();
  absl::StatusOr<Pending> Find(Handle handle) const;
  absl::StatusOr<Pending> Take(Handle handle);
  std::shared_ptr<session::Session> session() const;

  std::atomic<void (*)()> join_{nullptr};
  absl::Status last_join_ ABSL_GUARDED_BY(mutex_);  // how the last JoinWorld has ended
  // Held while a world is joined or left, which may block for minutes. `mutex_` is held briefly
  // only, so queries never wait for a join.
  absl::Mutex init_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  bool prepared_ ABSL_GUARDED_BY(init_mutex_) = false;
  bool was_read_ ABSL_GUARDED_BY(init_mutex_) = false;  // env_ is the process's environment
  settings::RuntimeEnv env_ ABSL_GUARDED_BY(init_mutex_);
  // The newest file that the script of this process has named; empty: none.
  std::string started_timeline_ ABSL_GUARDED_BY(init_mutex_);
  uint64_t lone_epoch_ ABSL_GUARDED_BY(init_mutex_) = 0;
  absl::Status released_ ABSL_GUARDED_BY(init_mutex_);  // not OK: released from this job
  std::unique_ptr<collectives::Backend> backend_ ABSL_GUARDED_BY(init_mutex_);
  // nullptr: the runtime does not handle device tensors
  std::shared_ptr<collectives::DeviceBackend> devices_ ABSL_GUARDED_BY(init_mutex_);
  std::optional<int> device_ ABSL_GUARDED_BY(init_mutex_);  // see TakesDevice
  // Held by this process, and busy from the first world to a clean shutdown; empty: none.
  std::optional<os::LivenessPage> liveness_ ABSL_GUARDED_BY(init_mutex_);

  group::ProcessGroups groups_;
  group::Transfers transfers_;
  TrainingProgress progress_;
  // What a rehearsal orders; nullptr in any other job. Never freed: backends use it until the end.
  std::atomic<rehearsal::page::FaultPage*> faults_{nullptr};
  std::atomic<bool> left_well_{false};  // left the newest world cleanly, and the daemon knows

  mutable absl::Mutex mutex_;
  // The thread that calls callbacks; started by the first SubmitThen. Declared before the worlds,
  // whose operations use it, so that it is destroyed after them.
  std::unique_ptr<TaskThread> callbacks_ ABSL_GUARDED_BY(mutex_);
  // Created once per job; nullptr in a process without an agent.
  std::shared_ptr<session::Session> session_ ABSL_GUARDED_BY(mutex_);
  std::string job_id_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<commit_store::CommitArena> store_ ABSL_GUARDED_BY(mutex_);
  // The stores of earlier jobs, kept because states restored from them may still be in use.
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
