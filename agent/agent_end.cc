// The end of an agent: signals, the daemon's EndJob, and a lost daemon.
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/agent.h"
#include "agent/protocol/agent_protocol.h"
#include "base/failpoint/failpoint.h"
#include "base/os/process_tree.h"
#include "base/os/signals.h"
#include "base/text/names.h"
#include "base/text/utf8.h"

namespace hvd::agent {
namespace {

// The time for the daemon to close its side, and again for the launcher to read the rest of the
// output.
constexpr absl::Duration kFarewellTime = absl::Seconds(5);
// The time for the daemon to hear why an agent ends at once.
constexpr absl::Duration kGoodbyeTime = absl::Seconds(1);
// The grace of a drain for which neither the agent's settings nor the daemon have one.
constexpr absl::Duration kDrainGrace = absl::Seconds(30);

std::string NameOf(int signal) {
  return signal == SIGTERM ? "SIGTERM" : signal == SIGINT ? "SIGINT" : "SIGHUP";
}

std::string Printable(const absl::Status& status) {
  return text::OnOneLine(text::ToUtf8({status.message().data(), status.message().size()}));
}

}  // namespace

void Agent::OnSignal() {
  signalfd_siginfo info;
  while (read(signals_.get(), &info, sizeof(info)) == sizeof(info)) {
    // SIGCHLD needs no action here: after this loop orphans are reaped in any case.
    if (info.ssi_signo == SIGCHLD) continue;
    if (os::IsNotice(static_cast<int>(info.ssi_signo))) {
      PassOn(static_cast<int>(info.ssi_signo));
      continue;
    }
    const bool by_guard = static_cast<pid_t>(info.ssi_pid) == getppid();
    const int signal = static_cast<int>(info.ssi_signo);
    // A terminal that closes may say so twice, by its shell and by the kernel, and asks for no
    // haste.
    if (signal == SIGHUP && draining()) continue;
    const bool asks = (signal == SIGTERM || signal == SIGHUP) && !GuardHasGone();
    if (asks && DrainBySignal(signal, by_guard)) continue;
    return LeaveBySignal(signal);
  }
  if (workers_.has_value()) workers_->ReapOrphans();
}

// A scheduler's notice comes up to three times: to this process, to its guard, and to horovodrun,
// which sends it to all agents. The workers get it once.
void Agent::PassOn(int notice) {
  constexpr absl::Duration kSameNotice = absl::Seconds(2);
  if (!os::IsNotice(notice) || !workers_.has_value()) return;
  if (!passed_on_.insert(notice).second) return;
  loop_.After(kSameNotice, [this, notice] { passed_on_.erase(notice); });
  workers_->Signal(notice);
}

// Ends the agent at once, but tells the daemon why first. Else the host would be lost for no known
// reason: the connection of a killed agent ends in the same way.
void Agent::LeaveBySignal(int signal) {
  exit_code_ = 128 + signal;
  const bool attached = welcome_.has_value() && phase_ == Phase::kWorking;
  if (!attached || std::exchange(leaving_, true)) return Quit(exit_code_);
  pb::AgentMessage message;
  message.mutable_leaving()->set_reason(WhyLeaving(signal));
  attachment_->Send(std::move(message));
  attachment_->Finish();
  loop_.After(kGoodbyeTime, [this] { Quit(exit_code_); });
}

// When the guard dies, the kernel gives this process another parent, and then sends SIGTERM.
bool Agent::GuardHasGone() const { return getppid() != guard_; }

std::string Agent::WhyLeaving(int signal) const {
  if (signal == SIGTERM && GuardHasGone()) return "horovod-guard, its agent's parent, was killed";
  return absl::StrCat("its agent got ", NameOf(signal));
}

// Returns whether the signal is only a request for a drain. A signal to the process group arrives
// twice, directly and through the guard, and counts as one request. The second signal from the same
// sender ends the wait for the next commit: the workers leave now, but the host goes only when
// its newest commit is safe. The third one ends the agent at once.
bool Agent::DrainBySignal(int signal, bool by_guard) {
  if (!welcome_.has_value() || !welcome_->elastic()) return false;
  if (phase_ != Phase::kWorking && !draining()) return false;
  const int count = ++terms_[by_guard ? 1 : 0];
  if (count > 2) return false;
  if (count == 1) Drain(absl::StrCat("horovod-agent got ", NameOf(signal)));
  if (count == 2 && !std::exchange(hurried_, true)) attachment_->Send(DrainMessage());
  return true;
}

// REQUIRES: the job is elastic.
void Agent::Drain(const std::string& reason) {
  if (draining()) return;
  drain_reason_ = reason;
  FAILPOINT("agent.drain.decided");
  attachment_->Send(DrainMessage());
  FAILPOINT("agent.drain.told");
  // The daemon normally ends this host's part of the job within the grace period. The timer is the
  // fallback for a daemon that does not.
  absl::Duration grace = drain_grace_;
  if (grace <= absl::ZeroDuration()) grace = absl::Milliseconds(welcome_->drain_grace_ms());
  if (grace <= absl::ZeroDuration()) grace = kDrainGrace;
  loop_.After(grace + settings_.drain_margin, [this] {
    if (phase_ == Phase::kWorking) Quit(128 + SIGTERM);
  });
}

pb::AgentMessage Agent::DrainMessage() const {
  pb::AgentMessage message;
  message.mutable_draining()->set_grace_ms(
      static_cast<uint32_t>(absl::ToInt64Milliseconds(drain_grace_)));
  message.mutable_draining()->set_reason(drain_reason_);
  message.mutable_draining()->set_at_once(hurried_);
  return message;
}

void Agent::OnEndJob(const pb::EndJob& end) {
  if (phase_ == Phase::kWorking) phase_ = Phase::kEnding;
  FAILPOINT("agent.end.ordered");
  if (settings_.alone) {
    end_code_ = end.exit_code();
    // An adopted process that was the worker prints its own result; one that was not yet the worker
    // gets the summary as its error. The agent prints nothing for either.
    const std::string summary = end.summary().empty() ? "has left the job" : end.summary();
    if (settings_.adoption == nullptr) Say(summary);
    if (settings_.adoption != nullptr) settings_.adoption->SendJobEnd(summary);
  }
  workers_->StopAll(absl::Milliseconds(end.grace_ms()));
  if (workers_->empty()) OnWorkersEmpty();
}

// Called each time the last worker is gone. An adopted process can be the worker only once: in an
// elastic job the host then leaves the job, because every further worker of its slot would fail.
void Agent::OnWorkersEmpty() {
  const bool can_start_more = settings_.adoption == nullptr;
  if (phase_ == Phase::kWorking && !can_start_more && welcome_->elastic()) {
    return Drain("the process there has ended, or has left the job");
  }
  if (phase_ != Phase::kEnding) return;
  phase_ = Phase::kDetaching;
  FAILPOINT("agent.end.workers_gone");
  attachment_->Finish();
  FAILPOINT("agent.end.detached");
  loop_.After(kFarewellTime, [this] { QuitWhenFlushed(end_code_); });
}

// The adopted process ended before it became a worker.
void Agent::OnWithdrawn() {
  if (phase_ == Phase::kWorking && welcome_.has_value() && welcome_->elastic()) {
    return Drain("the process there has ended before it was a worker");
  }
  LauncherGone();
}

void Agent::OnDetached(const absl::Status& status) {
  FAILPOINT("agent.attach.lost");
  if (!welcome_.has_value()) {
    return Say(absl::StrCat("can't attach to the rendezvous daemon yet: ", Printable(status)));
  }
  Say(absl::StrCat("lost the rendezvous daemon (", Printable(status),
                   "); the workers continue while the agent reconnects"));
}

void Agent::OnAttachmentClosed(const absl::Status& status) {
  if (leaving_) return Quit(exit_code_);
  if (phase_ == Phase::kDetaching) return QuitWhenFlushed(end_code_);
  // No other stream will be opened, and without a daemon the workers can't go on.
  KillWorkers();
  // AlreadyExists: another agent took this host's place while it was cut off.
  if (!welcome_.has_value() || absl::IsAlreadyExists(status)) {
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
  frame.mutable_ready()->set_warning(text::ToUtf8(line));
  output_.Send(frame);
}

void Agent::Refuse(const std::string& message) {
  pb::AgentFrame frame;
  frame.mutable_refusal()->set_message(text::ToUtf8(message));
  output_.Send(frame);
  if (settings_.adoption != nullptr) settings_.adoption->SendError(message);
  QuitWhenFlushed(protocol::kAgentRefusedExitCode);
}

void Agent::QuitWhenFlushed(int exit_code) {
  // Lets the launcher read the rest of the output, but not for longer than kFarewellTime: it may
  // hang. The first exit code counts.
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
  // KillDescendants also reaps; the workers' destructors then find no running child, only an
  // adopted process.
  os::KillDescendants();
  workers_.reset();
}

}  // namespace hvd::agent
