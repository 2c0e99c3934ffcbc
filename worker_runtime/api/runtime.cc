#include "worker_runtime/api/runtime.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/failpoint/failpoint.h"
#include "base/settings/runtime_settings.h"
#include "base/status_macros.h"
#include "collectives/nccl/nccl_backend.h"
#include "collectives/unreached_rank.h"
#include "rehearsal/worker/faulty_backend.h"
#include "worker_runtime/api/backends.h"

namespace hvd::worker_runtime::api {
namespace {

// Ranks may arrive minutes apart (imports from a slow file system). The daemon reports which ranks
// it is waiting for.
constexpr absl::Duration kJoinTimeout = absl::Minutes(10);
// After a failure to connect, this worker asks for the next world: the daemon may have noticed by
// then that the unreachable member is dead. After this many failures the call returns the error;
// hvd.elastic.run then calls again (elastic/loop.py), until the daemon gives up.
constexpr int kMostConnectFailures = 3;
constexpr char kLoneAddress[] = "127.0.0.1";
constexpr char kReleasedPayload[] = "hvd.released";

// Whether the daemon has ended the epoch, so that it has, or will have, a newer one.
bool IsDaemonsWord(const absl::Status& status) {
  return absl::IsAborted(status) || absl::IsFailedPrecondition(status);
}

}  // namespace

absl::Status NotInitializedError() {
  return absl::FailedPreconditionError("Horovod has not been initialized: call hvd.init() first");
}

absl::Status ReleasedError(absl::string_view reason) {
  absl::Status status =
      absl::CancelledError(absl::StrCat("this worker is not needed any more: ", reason));
  status.SetPayload(kReleasedPayload, absl::Cord());
  return status;
}

bool IsReleased(const absl::Status& status) {
  return status.GetPayload(kReleasedPayload).has_value();
}

Runtime::Runtime(settings::RuntimeEnv env, std::shared_ptr<session::Session> session,
                 std::unique_ptr<collectives::Backend> backend,
                 std::optional<os::LivenessPage> liveness)
    : prepared_(true),
      env_(std::move(env)),
      backend_(std::move(backend)),
      liveness_(std::move(liveness)),
      session_(std::move(session)) {}

absl::Status Runtime::Prepare() {
  if (prepared_) return released_;
  ASSIGN_OR_RETURN(env_, settings::ParseRuntimeEnv(settings::ReadRuntimeVariables()));
  // prepared_ is set last: after an error the next init() tries everything again.
  if (!env_.agent_socket.empty()) RETURN_IF_ERROR(MeetAgent());
  backend_ = MakeBackend(env_);
  if (rehearsal::page::FaultPage* const faults = faults_.load()) {
    backend_ = rehearsal::worker::MakeFaultyBackend(std::move(backend_), *faults);
  }
  devices_ = MakeDeviceBackend(env_);
  prepared_ = true;
  was_read_ = true;
  return absl::OkStatus();
}

bool Runtime::TakesDevice(int device) {
  absl::MutexLock lock(&init_mutex_);
  if (devices_ == nullptr || device < 0 || !collectives::nccl::HasCudaDriver()) return false;
  if (!device_.has_value()) device_ = device;
  return device_ == device;
}

absl::StatusOr<session::JoinAnswer> Runtime::Ask(const collectives::peer::PeerPort& port,
                                                 bool may_defer) {
  const std::shared_ptr<session::Session> session = this->session();
  if (session != nullptr) {
    pb::JoinWorldRequest request = progress_.TakeWord();
    request.set_port(port.number());
    request.set_may_defer(may_defer);
    return session->JoinNextWorld(std::move(request), kJoinTimeout);
  }
  session::WorkerWorld world;
  world.epoch = Epoch(++lone_epoch_);
  world.own = world.root = {"localhost", kLoneAddress, port.number()};
  world.members = std::make_shared<session::Members>(std::vector<session::Peer>{world.own});
  return world;
}

absl::Status Runtime::Join(bool may_defer) {
  const std::shared_ptr<session::Session> session = this->session();
  const std::string address =
      session == nullptr ? kLoneAddress : session->standing().advertise_address;
  for (int failures = 0;;) {
    ASSIGN_OR_RETURN(const std::shared_ptr<collectives::peer::PeerPort> port,
                     collectives::peer::PeerPort::Open(address));
    RETURN_IF_ERROR(FAILPOINT_STATUS("worker.join.listening"));
    ASSIGN_OR_RETURN(session::JoinAnswer answer, Ask(*port, may_defer));
    if (const auto* released = std::get_if<session::ReleasedFromJob>(&answer)) {
      return released_ = ReleasedError(released->reason);
    }
    if (const auto* deferred = std::get_if<session::DeferredPlace>(&answer)) {
      FAILPOINT("worker.join.deferred");
      ShowWhetherBusy(true);
      absl::MutexLock lock(&mutex_);
      place_ = deferred->place;
      return absl::OkStatus();
    }
    const session::WorkerWorld& joined = *std::get_if<session::WorkerWorld>(&answer);
    FAILPOINT("worker.join.answered");
    auto world = ActiveWorld::Connect(env_, joined, port, *backend_, devices_, session.get());
    if (world.ok()) {
      FAILPOINT("worker.join.connected");
      env_.notes.clear();  // logged by this world
      ShowWhetherBusy(true);
      absl::MutexLock lock(&mutex_);
      active_ = *std::move(world);
      place_ = joined.self().place;
      left_well_.store(false);
      return absl::OkStatus();
    }
    const bool is_final = session == nullptr || !session->standing().elastic ||
                          absl::IsInvalidArgument(world.status());
    if (is_final) return world.status();
    // No failure of this worker's: the daemon has a newer world, for which it asks at once.
    if (IsDaemonsWord(world.status())) continue;
    // Not as the loss of a peer: a way that is closed between two hosts, e.g. by a firewall, stays
    // closed, so the job should soon end with this message.
    progress_.NoteError(std::string(world.status().message()), /*caused_by_peer=*/false);
    progress_.NoteUnreached(collectives::UnreachedRankOf(world.status()));
    if (++failures >= kMostConnectFailures) return world.status();
  }
}

void Runtime::ForgetJob() {
  prepared_ = false;
  released_ = absl::OkStatus();
  left_well_.store(false);
  progress_.Reset();
  liveness_.reset();
  faults_.store(nullptr);
  absl::MutexLock lock(&mutex_);
  session_.reset();
  job_id_.clear();
  stack_pipe_.reset();
  if (store_ != nullptr) old_stores_.push_back(std::move(store_));
}

// As in Horovod, variables that a script sets after shutdown() apply to the next world. Settings
// of the process are kept. The agent and the worker's id may change: an adopted process takes part
// in several jobs, and may run alone in between.
absl::Status Runtime::ReadVariablesAgain() {
  ASSIGN_OR_RETURN(const settings::RuntimeEnv now,
                   settings::ParseRuntimeEnv(settings::ReadRuntimeVariables()));
  if (now.agent_socket != env_.agent_socket || now.worker_id != env_.worker_id) ForgetJob();
  env_.engine = now.engine;
  env_.autotune = now.autotune;
  env_.timeline = now.timeline;
  env_.timeline_mark_cycles = now.timeline_mark_cycles;
  started_timeline_.clear();
  return absl::OkStatus();
}

absl::Status Runtime::Init() {
  absl::MutexLock init_lock(&init_mutex_);
  // A second init() is allowed, as in Horovod: libraries call it without asking.
  if (place().has_value()) return absl::OkStatus();
  if (was_read_) RETURN_IF_ERROR(ReadVariablesAgain());
  RETURN_IF_ERROR(Prepare());
  const std::shared_ptr<session::Session> session = this->session();
  // Only the first join may be deferred, so that the script can prepare itself meanwhile.
  const bool may_defer =
      session != nullptr && session->standing().elastic && session->last_epoch() == Epoch(0);
  return Join(may_defer);
}

absl::Status Runtime::JoinWorld() {
  absl::MutexLock init_lock(&init_mutex_);
  if (active() != nullptr) return absl::OkStatus();
  RETURN_IF_ERROR(released_);
  if (!place().has_value()) return NotInitializedError();
  absl::Status joined = Join(/*may_defer=*/false);
  absl::MutexLock lock(&mutex_);
  last_join_ = joined;
  return joined;
}

absl::Status Runtime::Reset() {
  absl::MutexLock init_lock(&init_mutex_);
  if (const std::shared_ptr<ActiveWorld> world = TakeActive()) {
    world->LeaveForNext();
    progress_.NoteUnreached(world->unreached());
    KeepTimeline(*world);
  }
  RETURN_IF_ERROR(Prepare());
  return Join(/*may_defer=*/false);
}

// A timeline started or stopped at run time stays so in the next world, whichever process is rank 0
// there.
void Runtime::KeepTimeline(const ActiveWorld& world) {
  const std::optional<negotiation::TimelineOrder> wanted = world.wanted_timeline();
  // Rank 0 can order none without the variable either (StartTimeline).
  if (!wanted.has_value() || env_.timeline.empty()) return;
  // The order says only whether there is a timeline, because it may have been changed on its way.
  // Which file this process writes is said by its own script and environment.
  if (!wanted->records) {
    env_.timeline = std::string(settings::kDynamicTimeline);
  } else if (!started_timeline_.empty()) {
    env_.timeline = started_timeline_;
  }
  env_.timeline_mark_cycles = wanted->mark_cycles;
}

absl::Status Runtime::StartTimeline(const std::string& path, bool mark_cycles) {
  absl::MutexLock init_lock(&init_mutex_);
  if (!place().has_value()) return NotInitializedError();
  if (env_.timeline.empty()) {
    return absl::InvalidArgumentError(
        "The timeline can't be started: HOROVOD_TIMELINE was not set when Horovod was initialized. "
        "Set it to DYNAMIC, or to a file.");
  }
  const std::shared_ptr<ActiveWorld> world = active();
  // A deferred process is in no world, and only rank 0 of a world writes a timeline.
  if (world != nullptr) RETURN_IF_ERROR(world->StartTimeline(path, mark_cycles));
  started_timeline_ = path;
  return absl::OkStatus();
}

absl::Status Runtime::StopTimeline() {
  if (!place().has_value()) return NotInitializedError();
  const std::shared_ptr<ActiveWorld> world = active();
  return world == nullptr ? absl::OkStatus() : world->StopTimeline();
}

absl::Status Runtime::Shutdown() {
  if (TaskThread* const callbacks = this->callbacks(); callbacks && callbacks->IsCurrent()) {
    return absl::FailedPreconditionError(
        "hvd_shutdown waits for all callbacks, so none of them may call it");
  }
  absl::Status left = LeaveForGood();
  // init_mutex_ is released by now: a callback may call a function that takes it.
  if (TaskThread* const callbacks = this->callbacks()) callbacks->Drain();
  return left;
}

void Runtime::ShowWhetherBusy(bool busy) {
  if (liveness_.has_value()) liveness_->SetBusy(busy);
}

absl::Status Runtime::LeaveForGood() {
  absl::MutexLock init_lock(&init_mutex_);
  absl::Status left;
  if (place().has_value()) {
    const std::shared_ptr<ActiveWorld> world = TakeActive();
    if (world != nullptr) {
      world->Shutdown();
      progress_.NoteUnreached(world->unreached());
    }
    left = TellLeft(world.get());
  }
  if (left.ok()) ShowWhetherBusy(false);
  return left;
}

absl::Status Runtime::TellLeft(const ActiveWorld* world) {
  const std::shared_ptr<session::Session> session = this->session();
  if (session == nullptr) return absl::OkStatus();
  // The daemon must know that this worker has left cleanly before the process exits, so the timeout
  // allows for a daemon that is away.
  RETURN_IF_ERROR(FAILPOINT_STATUS("worker.finish.untold"));
  absl::Status told =
      session->ReportFinished(world == nullptr ? Epoch(0) : world->world().epoch,
                              std::max(env_.agent_timeout, session->standing().reattach));
  FAILPOINT("worker.finish.told");
  left_well_.store(told.ok());
  if (!absl::IsDeadlineExceeded(told)) return told;
  return absl::DeadlineExceededError(
      absl::StrCat(told.message(), "; HOROVOD_AGENT_TIMEOUT_SECONDS allows for more"));
}

std::shared_ptr<ActiveWorld> Runtime::TakeActive() {
  absl::MutexLock lock(&mutex_);
  place_.reset();
  return std::exchange(active_, nullptr);
}

std::shared_ptr<session::Session> Runtime::session() const {
  absl::MutexLock lock(&mutex_);
  return session_;
}

std::optional<rendezvous::placement::Placement> Runtime::place() const {
  absl::MutexLock lock(&mutex_);
  return place_;
}

bool Runtime::is_deferred() const {
  absl::MutexLock lock(&mutex_);
  return place_.has_value() && active_ == nullptr;
}

std::shared_ptr<ActiveWorld> Runtime::active() const {
  absl::MutexLock lock(&mutex_);
  return active_;
}

}  // namespace hvd::worker_runtime::api
