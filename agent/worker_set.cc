#include "agent/worker_set.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "agent/inspection/process_state.h"
#include "base/failpoint/failpoint.h"
#include "base/os/process_tree.h"
#include "base/status_macros.h"
#include "base/text/utf8.h"

namespace hvd::agent {
namespace {

pb::WorkerExited NeverStarted(uint64_t id, const std::string& why) {
  pb::WorkerExited exited;
  exited.set_worker_id(id);
  exited.set_start_error(text::ToUtf8(why));
  return exited;
}

}  // namespace

WorkerSet::WorkerSet(EventLoop& loop, output::AgentOutput& output, LaunchPlan plan,
                     WorkerPlace place, absl::Duration check_interval, process::Adoption* adoption,
                     Report report)
    : loop_(loop),
      output_(output),
      plan_(std::move(plan)),
      place_(std::move(place)),
      check_interval_(check_interval),
      adoption_(adoption),
      report_(std::move(report)) {}

WorkerSet::~WorkerSet() {
  if (check_timer_.has_value()) loop_.Cancel(*check_timer_);
}

void WorkerSet::Start(const pb::StartWorker& start) {
  // Idempotent: a daemon that was away may repeat a request.
  if (!log_.AddKnown(start.worker_id())) return;
  const uint64_t id = start.worker_id();
  absl::StatusOr<std::unique_ptr<Worker>> worker =
      Worker::Start(loop_, plan_, start, place_, adoption_,
                    {[this](pb::WorkerOutput output) { OnOutput(std::move(output)); },
                     [this, id] { OnDying(id); }, [this, id] { OnLost(id); },
                     [this](pb::WorkerExited exited) { OnExited(std::move(exited)); }});
  pb::AgentMessage message;
  if (!worker.ok()) {
    *message.mutable_exited() = NeverStarted(id, std::string(worker.status().message()));
    return Send(std::move(message));
  }
  message.mutable_started()->set_worker_id(id);
  message.mutable_started()->set_pid((*worker)->pid());
  (*worker)->set_paused(paused_);
  workers_.emplace(id, *std::move(worker));
  FAILPOINT("agent.worker.watched");
  Send(std::move(message));
  FAILPOINT("agent.worker.told");
  if (place_.elastic) CheckLater();
}

void WorkerSet::Send(pb::AgentMessage message) {
  log_.Add(message);
  report_(std::move(message));
}

void WorkerSet::CheckLater() {
  if (check_timer_.has_value()) return;
  check_timer_ = loop_.After(check_interval_, [this] { Check(); });
}

void WorkerSet::Check() {
  check_timer_.reset();
  bool more = place_.elastic && !empty();
  for (const auto& [id, worker] : workers_) {
    if (place_.elastic) worker->CheckStopped();
    more = worker->CheckReplaced() || more;
  }
  if (more) CheckLater();
}

void WorkerSet::OnDying(uint64_t id) {
  pb::AgentMessage message;
  FAILPOINT("agent.dying.noticed");
  message.mutable_dying()->set_worker_id(id);
  Send(std::move(message));
}

// In a static job the exit alone counts: how the process ended is the job's end.
void WorkerSet::OnLost(uint64_t id) {
  if (place_.elastic) OnDying(id);
  CheckLater();
}

void WorkerSet::Stop(const std::vector<uint64_t>& ids, absl::Duration grace) {
  for (const uint64_t id : ids) {
    const auto worker = workers_.find(id);
    if (worker != workers_.end()) worker->second->Stop(grace);
  }
}

void WorkerSet::StopAll(absl::Duration grace) {
  for (const auto& [id, worker] : workers_) worker->Stop(grace);
}

void WorkerSet::Signal(int signal) {
  if (adoption_ != nullptr) return;
  for (const auto& [id, worker] : workers_) {
    for (const pid_t pid : inspection::CatchersOf(worker->pid(), signal)) kill(pid, signal);
  }
}

void WorkerSet::Sample(uint64_t id) {
  const auto worker = workers_.find(id);
  if (worker == workers_.end()) return;
  worker->second->Sample([this, id](const inspection::StackSample& sample) {
    pb::AgentMessage message;
    pb::WorkerSampled& sampled = *message.mutable_sampled();
    sampled.set_worker_id(id);
    sampled.set_doing(sample.doing);
    *sampled.mutable_stack() = {sample.stack.begin(), sample.stack.end()};
    report_(std::move(message));
  });
}

// Checks the worker's secret and the ancestry of `asker`. The secret can leak, e.g. with a log of
// the environment; the ancestry can't be faked.
absl::Status WorkerSet::Admit(const pb::WorkerHello& hello, pid_t asker) const {
  const auto worker = workers_.find(hello.worker_id());
  if (worker == workers_.end()) {
    return absl::PermissionDeniedError(
        absl::StrCat("this host runs no worker ", hello.worker_id()));
  }
  RETURN_IF_ERROR(worker->second->CheckHello(hello));
  // If /proc is not that of this PID namespace, the ancestry is unknown, and the secret has to
  // suffice.
  if (!os::ProcIsOurs()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const bool is_its_own, worker->second->Includes(asker));
  if (is_its_own) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      "this process was not started by worker ", hello.worker_id(), ", but by something else that ",
      "has its environment, like a container's daemon; run horovod-agent or horovodrun where the "
      "workers run"));
}

absl::StatusOr<int> WorkerSet::CommitArena(uint64_t id) {
  Fd& arena = arenas_[workers_.at(id)->slot()];
  if (!arena.valid()) arena.reset(memfd_create("hvd-commits", MFD_CLOEXEC));
  if (!arena.valid()) return absl::ErrnoToStatus(errno, "no memory for commits");
  return arena.get();
}

void WorkerSet::ResumeOutput() {
  paused_ = false;
  for (const auto& [id, worker] : workers_) worker->set_paused(false);
}

void WorkerSet::OnOutput(pb::WorkerOutput output) {
  pb::AgentFrame frame;
  *frame.mutable_output() = std::move(output);
  output_.Send(frame);
  // Backpressure: all workers' pipes are left unread until the output has been written
  // (ResumeOutput).
  if (paused_ || !output_.full()) return;
  paused_ = true;
  for (const auto& [id, worker] : workers_) worker->set_paused(true);
}

void WorkerSet::OnExited(pb::WorkerExited exited) {
  // The worker is removed first, so that ReapOrphans kills the processes that it has left.
  workers_.erase(exited.worker_id());
  pb::AgentMessage message;
  *message.mutable_exited() = std::move(exited);
  FAILPOINT("agent.exit.reaped");
  Send(std::move(message));
  FAILPOINT("agent.exit.told");
  ReapOrphans();
  if (empty() && on_empty_) on_empty_();
}

// Whether the worker of process `pid` has ended. The worker's id is in the environment, which a
// process inherits regardless of its session and process group. Without an id: whether no worker is
// left.
bool WorkerSet::OutlivedItsWorker(pid_t pid) const {
  std::ifstream file(absl::StrCat("/proc/", pid, "/environ"));
  for (std::string entry; std::getline(file, entry, '\0');) {
    absl::string_view text = entry;
    uint64_t id = 0;
    if (absl::ConsumePrefix(&text, "HOROVOD_WORKER_ID=") && absl::SimpleAtoi(text, &id)) {
      return !Has(id);
    }
  }
  return empty();
}

void WorkerSet::ReapOrphans() {
  // The workers' own processes are left out: their WorkerProcess reaps them.
  std::map<pid_t, uint64_t> own;
  for (const auto& [id, worker] : workers_) own.emplace(worker->pid(), id);
  for (const pid_t child : os::ChildrenOf(getpid())) {
    if (own.count(child) > 0) continue;
    if (OutlivedItsWorker(child)) kill(child, SIGKILL);
    waitpid(child, nullptr, WNOHANG);
  }
}

}  // namespace hvd::agent
