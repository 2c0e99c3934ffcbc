// The end of an agent: signals, the daemon's EndJob, and a lost daemon.
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/agent.h"
#include "agent/output/stderr_tail.h"
#include "agent/protocol/agent_protocol.h"
#include "base/os/process_tree.h"

namespace hvd::agent {
namespace {

// The time for the daemon to close its side, and for the launcher to take the rest of the output.
constexpr absl::Duration kFarewellTime = absl::Seconds(5);
// The grace of a drain for which neither the agent's settings nor the daemon have one.
constexpr absl::Duration kDrainGrace = absl::Seconds(30);

std::string Printable(const absl::Status& status) {
  return output::ToUtf8({status.message().data(), status.message().size()});
}

}  // namespace

void Agent::OnSignal() {
  signalfd_siginfo info;
  while (read(signals_.get(), &info, sizeof(info)) == sizeof(info)) {
    if (info.ssi_signo == SIGCHLD) continue;
    const bool by_guard = static_cast<pid_t>(info.ssi_pid) == getppid();
    if (info.ssi_signo == SIGTERM && DrainBySignal(by_guard)) continue;
    return Quit(128 + static_cast<int>(info.ssi_signo));
  }
  if (workers_.has_value()) workers_->ReapOrphans();
}

// Returns whether the signal only asks for a drain. A signal to all processes arrives twice,
// directly and passed on by the guard, and counts as one request.
bool Agent::DrainBySignal(bool by_guard) {
  if (!welcome_.has_value() || !welcome_->elastic()) return false;
  if (phase_ != Phase::kWorking && !draining()) return false;
  if (++terms_[by_guard ? 1 : 0] > 1) return false;
  Drain("horovod-agent got SIGTERM");
  return true;
}

// REQUIRES: the job is elastic.
void Agent::Drain(const std::string& reason) {
  if (draining()) return;
  drain_reason_ = reason;
  attachment_->Send(DrainMessage());
  absl::Duration grace = settings_.drain_grace;
  if (grace <= absl::ZeroDuration()) grace = absl::Milliseconds(welcome_->drain_grace_ms());
  if (grace <= absl::ZeroDuration()) grace = kDrainGrace;
  loop_.After(grace + settings_.drain_margin, [this] {
    if (phase_ == Phase::kWorking) Quit(128 + SIGTERM);
  });
}

pb::AgentMessage Agent::DrainMessage() const {
  pb::AgentMessage message;
  message.mutable_draining()->set_grace_ms(
      static_cast<uint32_t>(absl::ToInt64Milliseconds(settings_.drain_grace)));
  message.mutable_draining()->set_reason(drain_reason_);
  return message;
}

void Agent::OnEndJob(const pb::EndJob& end) {
  if (phase_ == Phase::kWorking) phase_ = Phase::kEnding;
  if (settings_.alone) {
    end_code_ = end.exit_code();
    // An adopted process's own output says how it ended; whoever started the job says the rest.
    const std::string summary = end.summary().empty() ? "has left the job" : end.summary();
    if (settings_.adoption == nullptr) Say(summary);
    if (settings_.adoption != nullptr) settings_.adoption->SendJobEnd(summary);
  }
  workers_->StopAll(absl::Milliseconds(end.grace_ms()));
  if (workers_->empty()) OnWorkersEmpty();
}

// The adopted process was the worker, and can't be another one: in an elastic job the host leaves,
// so that its slot gets no worker that would only fail.
void Agent::OnWorkersEmpty() {
  const bool can_start_more = settings_.adoption == nullptr;
  if (phase_ == Phase::kWorking && !can_start_more && welcome_->elastic()) {
    return Drain("the process there has ended, or has left the job");
  }
  if (phase_ != Phase::kEnding) return;
  phase_ = Phase::kDetaching;
  attachment_->Finish();
  loop_.After(kFarewellTime, [this] { QuitWhenFlushed(end_code_); });
}

// The adopted process is gone before it was a worker.
void Agent::OnWithdrawn() {
  if (phase_ == Phase::kWorking && welcome_.has_value() && welcome_->elastic()) {
    return Drain("the process there has ended before it was a worker");
  }
  LauncherGone();
}

void Agent::OnDetached(const absl::Status& status) {
  Say(absl::StrCat("lost the rendezvous daemon (", Printable(status),
                   "); the workers go on while it is looked for"));
}

void Agent::OnAttachmentClosed(const absl::Status& status) {
  if (phase_ == Phase::kDetaching) return QuitWhenFlushed(end_code_);
  KillWorkers();
  if (!welcome_.has_value()) {
    return Refuse(absl::StrCat(
        plan_.host, ": the rendezvous daemon did not take this host: ", Printable(status)));
  }
  if (!status.ok()) Say(absl::StrCat("lost the rendezvous daemon: ", Printable(status)));
  const bool in_order = settings_.alone ? phase_ != Phase::kWorking : status.ok();
  QuitWhenFlushed(in_order ? end_code_ : 1);
}

void Agent::OnOutputIdle() {
  if (workers_.has_value()) workers_->ResumeOutput();
  if (quit_when_flushed_) Quit(exit_code_);
}

void Agent::Say(const std::string& text) {
  const std::string line = absl::StrCat(plan_.host, ": ", text);
  if (!settings_.alone) {
    fprintf(stderr, "%s\n", line.c_str());
    return;
  }
  pb::AgentFrame frame;
  frame.mutable_ready()->set_warning(line);
  output_.Send(frame);
}

void Agent::Refuse(const std::string& message) {
  pb::AgentFrame frame;
  frame.mutable_refusal()->set_message(output::ToUtf8(message));
  output_.Send(frame);
  if (settings_.adoption != nullptr) settings_.adoption->SendError(message);
  QuitWhenFlushed(protocol::kAgentRefusedExitCode);
}

void Agent::QuitWhenFlushed(int exit_code) {
  if (output_.idle()) return Quit(exit_code);
  if (std::exchange(quit_when_flushed_, true)) return;
  exit_code_ = exit_code;
  loop_.After(kFarewellTime, [this] { Quit(exit_code_); });
}

void Agent::Quit(int exit_code) {
  exit_code_ = exit_code;
  loop_.Stop();
}

void Agent::KillWorkers() {
  os::KillDescendants();
  workers_.reset();
}

}  // namespace hvd::agent
