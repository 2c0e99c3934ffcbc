// The end of a job, for any reason: in good order first, then by force.
#include <algorithm>
#include <csignal>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text/duration_text.h"
#include "launcher/job/job_run.h"
#include "launcher/report/failure_report.h"
#include "rendezvous/reporting/checkpoint_text.h"

namespace hvd::launcher::job {
namespace {

// The additional time for the daemon to give its verdict after the grace period.
constexpr absl::Duration kDaemonPatience = absl::Seconds(6);
// How long output may wait for its reader while an elastic job ends.
constexpr absl::Duration kReaderPatience = absl::Seconds(6);
// The time for agents to kill their workers after a second Ctrl-C, before they are killed
// themselves.
constexpr absl::Duration kHurryTime = absl::Milliseconds(500);

}  // namespace

// Reports the reason of the failure in one line, and ends the job's processes without a grace
// period.
void JobRun::Fail(absl::string_view message, int exit_code) {
  SayLine(absl::StrCat("error: ", message));
  explained_ = true;
  Stop(std::string(message), exit_code, absl::ZeroDuration());
}

void JobRun::Stop(const std::string& reason, int exit_code, absl::Duration grace) {
  // The daemon stops the workers and ends the attached agents. If it does not within the deadline,
  // Escalate continues.
  exit_code_ = exit_code;
  BeginEnd(grace + kDaemonPatience);
  if (server_ == nullptr) return;
  // Workers that a signal stops may use their grace to save what they have, together.
  if (stop_signals_ > 0 && grace > absl::ZeroDuration()) {
    server_->Interrupt(reason, exit_code, grace);
  } else {
    server_->RequestStop(reason, exit_code, grace);
  }
  EndUnattached();
}

// Drains the whole job: schedulers send SIGTERM before they withdraw the nodes. Also if no rank is
// in training: those that have finished are given the time to exit. `said`: the reason, after
// "horovodrun: ".
void JobRun::Drain(const std::string& said, const std::string& reason, int exit_code) {
  exit_code_ = exit_code;
  const absl::Duration grace = plan_.elastic->spec.drain_grace;
  output_.Say(absl::StrCat(
      "horovodrun: ", said, "; ",
      server_->Describe().some_train ? "all workers leave at their next commit, within "
                                     : "no rank is in training, and all processes end within ",
      text::DurationText(grace), " (Ctrl-C, or SIGTERM, ends the job at once)\n"));
  server_->EndAtCommit(reason, exit_code, grace);
  AwaitDrained();
}

// The daemon stops workers that do not commit within the grace period, and gives the verdict; the
// deadline here is the fallback for a daemon that does not answer.
void JobRun::AwaitDrained() {
  phase_ = Phase::kDraining;
  was_drained_ = true;
  search_.reset();
  SetDeadline(plan_.elastic->spec.drain_grace + 2 * kDaemonPatience);
  WatchReader();
  elastic_->Withdraw();
}

// Workers whose output nobody takes would block in writing it, and not come to their commit.
void JobRun::WatchReader() {
  reader_deadline_ = clock_.Now() + kReaderPatience;
  output_is_taken_ = std::make_shared<std::atomic<bool>>(false);
  output_.NotifyDrained([taken = output_is_taken_] { taken->store(true); });
}

void JobRun::CheckReader() {
  reader_deadline_ = absl::InfiniteFuture();
  if (!output_is_taken_->load()) return output_.Abandon();
  if (phase_ == Phase::kDraining) WatchReader();  // it may stop at any time
}

// Somebody has asked the daemon to end the job (horovodrun stop), or this process has.
void JobRun::OnEnding(const std::string& text) {
  if (phase_ >= Phase::kDraining) return;
  SayLine(text);
  explained_ = was_stopped_ = true;
  if (elastic_.has_value()) return AwaitDrained();
  BeginEnd(kInterruptGrace + kDaemonPatience);
}

void JobRun::BeginEnd(absl::Duration time) {
  phase_ = Phase::kEnding;
  search_.reset();
  lost_deadline_ = absl::InfiniteFuture();
  SetDeadline(time);
}

// Ends the agents that are not attached to the daemon, and which the daemon therefore can't end.
// They have no workers.
void JobRun::EndUnattached() {
  const std::set<std::string> attached = AttachedHosts();
  for (const size_t i : fleet_.agents()) {
    if (attached.count(fleet_.target(i).host) > 0) continue;
    fleet_.CloseInput(i);
    // An ssh that is still connecting does not notice the end of its stdin.
    if (!fleet_.ready(i)) fleet_.Kill(i);
  }
}

void JobRun::Hurry() {
  // After one signal the waiting output is still written; a second one means that the user does not
  // want to wait.
  if (stop_signals_ > 1) output_.Abandon();
  if (server_ != nullptr) server_->RequestStop("killed", exit_code_, absl::ZeroDuration());
  fleet_.CloseAllInputs();
  phase_ = Phase::kClosing;
  SetDeadline(kHurryTime);
}

void JobRun::Escalate() {
  // Called at each passed deadline of the end: first closes the agents' inputs, then kills. While
  // output is waiting, e.g. in a paused pager, agents can't finish, so it only extends the
  // deadline; once only if this process is to end soon.
  if (stop_signals_ < 2 && output_.HasBacklog()) {
    if (is_terminated_ && std::exchange(has_extended_, true)) output_.Abandon();
    return SetDeadline(kAgentExitTime);
  }
  if (phase_ == Phase::kEnding) {
    fleet_.CloseAllInputs();
    phase_ = Phase::kClosing;
    return SetDeadline(kAgentExitTime);
  }
  fleet_.KillAll();
  phase_ = Phase::kKilling;
  SetDeadline(kAgentExitTime);
}

// How an elastic job has ended, unless the root cause follows; what happened in it, and its newest
// checkpoint. Empty if there was no world.
std::string JobRun::LastLine(const rendezvous::membership::Membership::View& view) const {
  const std::string summary = progress_.Summary();
  if (summary.empty()) return "";
  const bool success = verdict_.has_value() && verdict_->success;
  std::vector<std::string> parts;
  if (success || (verdict_.has_value() && was_drained_)) parts.push_back(verdict_->summary);
  parts.push_back(summary);
  parts.push_back(rendezvous::reporting::LastCheckpointText(view, success));
  if (parts.back().empty()) parts.pop_back();
  return absl::StrJoin(parts, "; ");
}

void JobRun::Report(const rendezvous::membership::Membership::View& view) {
  const std::string last = elastic_.has_value() ? LastLine(view) : "";
  if (!last.empty()) SayLine(last);
  // A root cause is reported once: not after a failure that the launcher has already explained, nor
  // for a stop that no rank caused.
  if (!verdict_.has_value() || verdict_->success || (explained_ && verdict_->rank < 0)) return;
  if (explained_ && !was_stopped_) return;
  for (const std::string& line : lost_) SayLine(line);
  output_.Say(report::RootCauseBlock(*verdict_));
}

void JobRun::ReportRehearsal(const rendezvous::membership::Membership::View& view) {
  if (!plan_.rehearsal.has_value()) return;
  // Not even begun: the reason was said.
  if (!rehearsal_.has_value()) return;
  const faults::JobRehearsal::End end =
      rehearsal_->Finish(view, exit_code_, was_stopped_ || explained_);
  output_.Say(end.table);
  const absl::Status written =
      dependencies_.write_report ? dependencies_.write_report(end.json) : absl::OkStatus();
  if (!written.ok()) SayLine(absl::StrCat("error: --inject-report: ", written.message()));
  exit_code_ =
      written.ok() || end.exit_code != 0 ? end.exit_code : faults::JobRehearsal::kNotAsPromised;
}

// Waits until all output has been written. A stop signal drops the rest, and so does the time if
// this process is to end soon. A broken stream produces one more message, so one more
// OutputIsDrained is awaited for it.
void JobRun::Flush() {
  if (is_terminated_ && !output_.AwaitDrained(kAgentExitTime)) output_.Abandon();
  const auto ask = [this] { output_.NotifyDrained([this] { events_.Post(OutputIsDrained{}); }); };
  ask();
  for (int awaited = 1; awaited > 0;) {
    const std::optional<JobEvent> event = events_.Next(absl::InfiniteFuture());
    if (std::holds_alternative<StopSignal>(*event)) output_.Abandon();
    if (std::holds_alternative<OutputIsDrained>(*event)) --awaited;
    if (const auto* broken = std::get_if<OutputIsBroken>(&*event)) {
      On(*broken);
      ask();
      ++awaited;
    }
  }
}

std::set<std::string> JobRun::AttachedHosts() {
  std::set<std::string> attached;
  for (const rendezvous::membership::Membership::HostView& view : server_->Describe().hosts) {
    if (view.attached) attached.insert(view.host.host);
  }
  return attached;
}

}  // namespace hvd::launcher::job
