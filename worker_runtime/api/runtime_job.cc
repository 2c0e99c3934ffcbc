// Runtime's part in a job: what the agent gives it, its commits, and what it tells the daemon.
#include <algorithm>
#include <utility>

#include "base/failpoint/failpoint.h"
#include "base/status_macros.h"
#include "worker_runtime/api/runtime.h"
#include "worker_runtime/session/agent_session.h"
#include "worker_runtime/session/bootstrap.h"

namespace hvd::worker_runtime::api {
namespace {

constexpr absl::Duration kReportTimeout = absl::Seconds(1);
constexpr absl::Duration kConfirmTimeout = absl::Seconds(5);

// Best effort: without the page the agent notices the end of this process a little later, and not
// that it executes another program. Empty if another process holds the page already, e.g. the
// parent that has started this one.
std::optional<os::LivenessPage> HoldLiveness(Fd fd) {
  if (!fd.valid()) return std::nullopt;
  absl::StatusOr<os::LivenessPage> page = os::LivenessPage::Map(std::move(fd));
  if (!page.ok() || !page->HoldForever().ok()) return std::nullopt;
  return *std::move(page);
}

// Best effort: without the store this worker's commits are lost when it ends.
std::unique_ptr<commit_store::CommitArena> OpenStore(Fd fd, const std::string& job) {
  if (!fd.valid()) return nullptr;
  absl::StatusOr<std::unique_ptr<commit_store::CommitArena>> arena =
      commit_store::CommitArena::Open(std::move(fd), job);
  return arena.ok() ? *std::move(arena) : nullptr;
}

// Only a rehearsal's agent sends such a page.
rehearsal::page::FaultPage* OpenFaults(Fd fd) {
  if (!fd.valid()) return nullptr;
  absl::StatusOr<std::unique_ptr<rehearsal::page::FaultPage>> page =
      rehearsal::page::FaultPage::Map(std::move(fd));
  return page.ok() ? page->release() : nullptr;
}

}  // namespace

absl::Status Runtime::MeetAgent() {
  ASSIGN_OR_RETURN(session::AgentAnswer answer,
                   session::FetchBootstrap(env_.agent_socket, WorkerId(env_.worker_id),
                                           env_.worker_word, env_.agent_timeout));
  RETURN_IF_ERROR(FAILPOINT_STATUS("worker.bootstrap.fetched"));
  liveness_ = HoldLiveness(std::move(answer.liveness_page));
  faults_.store(OpenFaults(std::move(answer.fault_page)));
  std::unique_ptr<commit_store::CommitArena> store =
      OpenStore(std::move(answer.commit_arena), answer.bootstrap.job_id());
  // Sent with the request to join: the daemon gives rank 0 to a worker with the newest commit.
  if (store != nullptr) {
    progress_.Restore(store->Newest().value_or(commit_store::CommitArena::Commit()).number);
  }
  RETURN_IF_ERROR(FAILPOINT_STATUS("worker.bootstrap.store_opened"));
  std::shared_ptr<session::Session> session =
      session::OpenAgentSession(answer.bootstrap, env_.agent_timeout);
  absl::MutexLock lock(&mutex_);
  job_id_ = answer.bootstrap.job_id();
  store_ = std::move(store);
  stack_pipe_ = std::move(answer.stack_pipe);
  stack_signal_ = answer.bootstrap.stack_signal();
  session_ = std::move(session);
  return absl::OkStatus();
}

commit_store::CommitArena* Runtime::store() const {
  absl::MutexLock lock(&mutex_);
  return store_.get();
}

absl::Status Runtime::TakeKeptCommit() {
  // While the commit is read its arena's owner may replace it, or another worker of the host may
  // release it. TakeOver then returns Aborted, and the next attempt sees the new state.
  constexpr int kAttempts = 5;
  commit_store::CommitArena* const store = this->store();
  absl::Status taken = absl::NotFoundError("no commits are kept here");
  if (store == nullptr) return taken;
  const settings::RuntimeEnv env = [this] {
    absl::MutexLock lock(&init_mutex_);
    return env_;
  }();
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    ASSIGN_OR_RETURN(Fd newest,
                     session::FetchNewestCommit(env.agent_socket, WorkerId(env.worker_id),
                                                env.worker_word, env.agent_timeout));
    if (!newest.valid()) return taken;
    RETURN_IF_ERROR(FAILPOINT_STATUS("worker.kept.fetched"));
    commit_store::ArenaView view(std::move(newest), job_id());
    taken = store->TakeOver(view);
    if (!absl::IsAborted(taken)) return taken;
  }
  return absl::NotFoundError(taken.message());
}

std::string Runtime::job_id() const {
  absl::MutexLock lock(&mutex_);
  return job_id_;
}

std::optional<Runtime::StackRequest> Runtime::stack_request() const {
  absl::MutexLock lock(&mutex_);
  if (!stack_pipe_.valid()) return std::nullopt;
  return StackRequest{stack_pipe_.get(), stack_signal_};
}

void Runtime::SetCommit(uint64_t number) {
  progress_.SetCommit(number);
  if (number == 0) return;
  if (const std::shared_ptr<session::Session> session = this->session())
    session->NoteCommit(number);
}

void Runtime::BeginTraining() {
  progress_.BeginTraining();
  if (const std::shared_ptr<ActiveWorld> world = active()) world->NoteBegin(progress_.commit());
}

void Runtime::NoteCheckpoints(const session::Session::Checkpoints& checkpoints) {
  const std::shared_ptr<session::Session> session = this->session();
  if (session == nullptr || !session->standing().elastic) return;
  session->NoteCheckpoints(checkpoints);
  const std::shared_ptr<ActiveWorld> world = active();
  const Epoch epoch = world == nullptr ? session->last_epoch() : world->world().epoch;
  session->ReportProgress(epoch, kReportTimeout).IgnoreError();
}

bool Runtime::DiskIsFull() const {
  rehearsal::page::FaultPage* const faults = faults_.load();
  if (faults == nullptr || !faults->Orders(rehearsal::page::FaultPage::Order::kFullDisk)) {
    return false;
  }
  faults->NoteDone();
  return true;
}

absl::Status Runtime::CheckWorld() {
  rehearsal::page::FaultPage* const faults = faults_.load();
  // InvalidArgument: in Python a ValueError, which hvd.elastic.run does not catch.
  if (faults != nullptr && faults->Take(rehearsal::page::FaultPage::Order::kException)) {
    return absl::InvalidArgumentError("an exception that horovodrun --inject asks for");
  }
  const std::shared_ptr<ActiveWorld> world = active();
  return world == nullptr ? absl::OkStatus() : world->CheckLease();
}

absl::Status Runtime::ConfirmWorld() {
  const std::shared_ptr<session::Session> session = this->session();
  if (session == nullptr) return absl::OkStatus();
  const std::shared_ptr<ActiveWorld> world = active();
  const Epoch epoch = world == nullptr ? session->last_epoch() : world->world().epoch;
  const absl::Status confirmed = session->ReportProgress(epoch, kConfirmTimeout);
  if (absl::IsFailedPrecondition(confirmed) || absl::IsNotFound(confirmed)) {
    return absl::AbortedError(confirmed.message());
  }
  const bool silent = absl::IsUnavailable(confirmed) || absl::IsDeadlineExceeded(confirmed);
  // Without an answer: while the lease holds, no other world can have been formed. After a clean
  // shutdown there is no lease, but the daemon has confirmed the end of that world, which may have
  // been the job's last.
  if (silent && world != nullptr) return world->CheckLease();
  return silent && left_well_.load() ? absl::OkStatus() : confirmed;
}

void Runtime::ReportFailure(const std::string& message, bool caused_by_peer, bool ends_job) {
  std::shared_ptr<session::Session> session;
  Epoch epoch;
  uint64_t commit = 0;
  {
    absl::MutexLock lock(&mutex_);
    session = session_;
    if (store_ != nullptr) commit = store_->newest_number();
    if (active_ != nullptr) epoch = active_->world().epoch;
  }
  if (session == nullptr) return;
  // Best effort: if the daemon can't be reached, the agent still reports the exit code.
  session->ReportFailure(epoch, {message, caused_by_peer, commit, ends_job}, kReportTimeout)
      .IgnoreError();
}

}  // namespace hvd::worker_runtime::api
