// What an agent does in a rehearsal (horovodrun --inject): harm to its workers and to itself. Only
// an agent whose launcher has said so does any of it.
#include <unistd.h>

#include <csignal>

#include "absl/strings/str_cat.h"
#include "agent/agent.h"

namespace hvd::agent {
namespace {

// Between two looks whether a worker has done what it was ordered to do.
constexpr absl::Duration kLookPause = absl::Milliseconds(10);

}  // namespace

void Agent::OnFault(const pb::Fault& fault) {
  // The bootstrap message came from the launcher, on stdin. So not even who has the job's token can
  // have harm done in a job that is no rehearsal.
  if (!bootstrap_.is_rehearsal()) return AnswerFault(fault.id(), "this job is no rehearsal");
  if (phase_ != Phase::kWorking) return AnswerFault(fault.id(), "the host leaves the job");
  if (fault.kind() == pb::Fault::LOST_HOST) return LoseHost();
  if (fault.kind() == pb::Fault::PREEMPTION) return NoticePreemption(fault);
  Worker* const worker = workers_->Find(fault.worker_id());
  if (worker == nullptr) return AnswerFault(fault.id(), "its process has ended");
  const absl::Status harmed = worker->Harm(fault);
  if (!harmed.ok()) return AnswerFault(fault.id(), std::string(harmed.message()));
  if (fault.duration_ms() > 0) {
    loop_.After(absl::Milliseconds(fault.duration_ms()), [this, fault] { EndHarm(fault); });
  }
  const bool is_done = fault.kind() == pb::Fault::KILL || fault.kind() == pb::Fault::STOP;
  if (is_done) return AnswerFault(fault.id(), "");
  awaited_fault_ = fault.id();
  AwaitHarm(fault);
}

// The worker does it to itself: in its next operation, at its next commit or checkpoint.
void Agent::AwaitHarm(const pb::Fault& fault) {
  if (awaited_fault_ != fault.id()) return;
  Worker* const worker = workers_.has_value() ? workers_->Find(fault.worker_id()) : nullptr;
  if (worker != nullptr && !worker->IsHarmed()) {
    loop_.After(kLookPause, [this, fault] { AwaitHarm(fault); });
    return;
  }
  awaited_fault_ = 0;
  AnswerFault(fault.id(), worker == nullptr ? "its process has ended" : "");
}

void Agent::EndHarm(const pb::Fault& fault) {
  Worker* const worker = workers_.has_value() ? workers_->Find(fault.worker_id()) : nullptr;
  if (worker == nullptr) return;
  worker->EndHarm();
  if (awaited_fault_ != fault.id() || worker->IsHarmed()) return;
  awaited_fault_ = 0;
  AnswerFault(fault.id(), "the worker had no occasion in that time");
}

void Agent::AnswerFault(uint64_t fault, const std::string& problem) {
  pb::AgentMessage message;
  message.mutable_fault_done()->set_fault_id(fault);
  message.mutable_fault_done()->set_problem(problem);
  attachment_->Send(std::move(message));
}

void Agent::NoticePreemption(const pb::Fault& fault) {
  if (draining()) return AnswerFault(fault.id(), "the host is being drained already");
  if (fault.duration_ms() > 0) drain_grace_ = absl::Milliseconds(fault.duration_ms());
  Drain("a preemption notice was rehearsed");
  AnswerFault(fault.id(), "");
}

// The agent dies without a message, as with its host. Its guard notices that and ends, too.
void Agent::LoseHost() {
  KillWorkers();
  kill(getpid(), SIGKILL);
}

}  // namespace hvd::agent
