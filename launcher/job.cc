#include "launcher/job.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launcher/console/root_cause.h"
#include "launcher/job_start.h"

namespace hvd {
namespace {

constexpr int kUsageError = 2;
constexpr absl::Duration kInterruptGrace = absl::Seconds(5);
// For the daemon's verdict once an agent has ended: it may wait for a cause, then for the others.
constexpr absl::Duration kVerdictTime = absl::Seconds(10);
// The same if the daemon never knew that agent.
constexpr absl::Duration kUnattachedTime = absl::Seconds(2);
// What the daemon adds to a grace before it gives its verdict anyway.
constexpr absl::Duration kDaemonPatience = absl::Seconds(6);
// For an agent that has no more work to exit, then the same once its input is closed.
constexpr absl::Duration kAgentExitTime = absl::Seconds(3);
// After a second Ctrl-C: for agents to kill their workers before they are killed themselves.
constexpr absl::Duration kHurryTime = absl::Milliseconds(500);

std::set<std::string> AttachedHosts(Server& server) {
  std::set<std::string> attached;
  for (const Membership::HostView& view : server.Describe().hosts) {
    if (view.attached) attached.insert(view.host.host);
  }
  return attached;
}

std::string SignalName(int signal) { return absl::StrCat("SIG", sigabbrev_np(signal)); }

// One pass through the phases, in order. For one thread.
class Job {
 public:
  Job(const JobPlan& plan, const JobDependencies& dependencies, JobEventQueue& events,
      OutputSink& output)
      : plan_(plan),
        events_(events),
        output_(output),
        clock_(events.clock()),
        start_time_(clock_.Now()),
        dependencies_(dependencies),
        fleet_(dependencies.start_agent, events, output) {}

  int Run();

 private:
  enum class Phase {
    kStarting,  // until every host has attached or the start's time is up
    kRunning,
    kEnding,   // the daemon winds up; agents exit by themselves
    kClosing,  // those that did not have lost their launcher
    kKilling,
  };

  void Start();
  void Handle(const JobEvent& event);
  void On(const AgentIsReady& event);
  void On(const AgentHasRefused& event);
  void On(const AgentHasExited& event);
  void On(const JobHasFinished& event);
  void On(const StopSignal& event);
  void On(const OutputIsBroken& event);
  void On(const OutputIsDrained& event) { drained_ = true; }

  void OnDeadline();
  void CheckStarted();
  void Fail(absl::string_view message, int exit_code);
  void Stop(const std::string& reason, int exit_code, absl::Duration grace);
  void EndUnattached();
  void Hurry();
  void Escalate();
  void Report();
  void Flush();

  bool Ending() const { return phase_ >= Phase::kEnding; }
  void SetDeadline(absl::Duration from_now) { deadline_ = clock_.Now() + from_now; }
  void Verbose(absl::string_view text);

  const JobPlan& plan_;
  JobEventQueue& events_;
  OutputSink& output_;
  Clock& clock_;
  const absl::Time start_time_;
  const JobDependencies& dependencies_;
  std::unique_ptr<Server> server_;
  AgentFleet fleet_;  // ends before the server

  Phase phase_ = Phase::kStarting;
  absl::Time deadline_ = absl::InfiniteFuture();       // of the phase
  absl::Time lost_deadline_ = absl::InfiniteFuture();  // for the verdict on a lost agent
  std::vector<std::string> lost_;                      // agents that ended too early, and how
  std::optional<Verdict> verdict_;
  int exit_code_ = 1;
  bool explained_ = false;  // why it ends has been said
  int stop_signals_ = 0;
  bool drained_ = false;
};

int Job::Run() {
  Start();
  while (!Ending() || !fleet_.AllExited()) {
    const std::optional<JobEvent> event = events_.Next(std::min(deadline_, lost_deadline_));
    if (event.has_value()) {
      Handle(*event);
    } else {
      OnDeadline();
    }
  }
  Verbose("every agent has exited");
  server_.reset();
  Report();
  Flush();
  return exit_code_;
}

void Job::Start() {
  deadline_ = start_time_ + plan_.start_timeout;
  if (plan_.verbose) output_.Say(absl::StrCat("horovodrun: ", PlanTable(plan_)));
  absl::StatusOr<StartedDaemon> daemon =
      StartDaemon(plan_, dependencies_.start_server,
                  [this](const Verdict& verdict) { events_.Post(JobHasFinished{verdict}); });
  if (!daemon.ok()) return Fail(daemon.status().message(), 1);
  server_ = std::move(daemon->server);
  Verbose(absl::StrCat("the daemon listens on ", absl::StrJoin(server_->addresses(), ", ")));
  for (const PlannedHost& host : plan_.hosts) {
    const absl::StatusOr<pb::AgentBootstrap> bootstrap =
        MakeBootstrap(plan_, host, *daemon->authority, daemon->job_id, server_->addresses());
    if (!bootstrap.ok()) return Fail(bootstrap.status().message(), 1);
    const absl::Status started = fleet_.Start(host.target, *bootstrap);
    if (!started.ok()) return Fail(started.message(), kUsageError);
  }
  Verbose(absl::StrCat("agents started: ", fleet_.size()));
}

void Job::Handle(const JobEvent& event) {
  std::visit([this](const auto& e) { On(e); }, event);
}

void Job::On(const AgentIsReady& event) {
  fleet_.MarkReady(event.agent);
  if (!event.warning.empty()) {
    output_.Say(absl::StrCat("horovodrun: warning: ", event.warning, "\n"));
  }
  Verbose(absl::StrCat("the agent on ", fleet_.target(event.agent).host, " is ready"));
}

void Job::On(const AgentHasRefused& event) {
  if (Ending()) return;
  const std::string& host = fleet_.target(event.agent).host;
  const bool names_host = absl::StrContains(event.message, host);
  Fail(names_host ? event.message : absl::StrCat(host, ": ", event.message), kUsageError);
}

void Job::On(const AgentHasExited& event) {
  fleet_.MarkExited(event.agent);
  if (Ending()) return;
  const AgentTarget& target = fleet_.target(event.agent);
  if (!fleet_.ready(event.agent)) return Fail(ExplainEarlyExit(target, event.exit), kUsageError);
  if (event.exit.exit_code != 0 || event.exit.signal != 0) {
    lost_.push_back(
        absl::StrCat("the agent on ", target.host, " has ended: ", DescribeExit(event.exit)));
  }
  // The daemon sees it too and finds the verdict, unless the agent had not got so far.
  const Membership::View view = server_->Describe();
  const bool began = std::any_of(view.hosts.begin(), view.hosts.end(),
                                 [](const auto& host) { return !host.workers.empty(); });
  const absl::Duration time = began ? kVerdictTime : kUnattachedTime;
  lost_deadline_ = std::min(lost_deadline_, clock_.Now() + time);
}

void Job::On(const JobHasFinished& event) {
  Verbose(absl::StrCat("verdict: ", event.verdict.summary));
  verdict_ = event.verdict;
  if (!explained_ || stop_signals_ > 0) exit_code_ = event.verdict.exit_code;
  if (phase_ > Phase::kEnding) return;
  phase_ = Phase::kEnding;
  lost_deadline_ = absl::InfiniteFuture();
  SetDeadline(kAgentExitTime);
  EndUnattached();
}

void Job::On(const StopSignal& event) {
  ++stop_signals_;
  if (Ending()) return Hurry();
  output_.Say(absl::StrCat(event.signal == SIGINT ? "\n" : "", "horovodrun: interrupted by ",
                           SignalName(event.signal), "; stopping ", plan_.num_proc,
                           plan_.num_proc == 1 ? " process" : " processes",
                           " (Ctrl-C again to kill at once)\n"));
  explained_ = true;
  Stop(absl::StrCat("horovodrun was interrupted by ", SignalName(event.signal)), 128 + event.signal,
       kInterruptGrace);
}

// As with any program whose reader has gone: an end without many words.
void Job::On(const OutputIsBroken&) {
  if (Ending()) return;
  explained_ = true;
  Stop("nobody reads horovodrun's output any more", 128 + SIGPIPE, kInterruptGrace);
}

void Job::OnDeadline() {
  if (Ending()) return Escalate();
  if (clock_.Now() >= lost_deadline_) {
    return Fail(absl::StrCat(lost_.empty() ? "an agent has ended" : absl::StrJoin(lost_, "; "),
                             ", and the job with it"),
                1);
  }
  CheckStarted();
}

// The time to start is up: either all hosts take part by now, or the job ends here.
void Job::CheckStarted() {
  const std::set<std::string> attached = AttachedHosts(*server_);
  std::vector<std::string> late;
  for (size_t i = 0; i < fleet_.size(); ++i) {
    const AgentTarget& target = fleet_.target(i);
    if (attached.count(target.host) > 0) continue;
    if (fleet_.ready(i)) {
      late.push_back(absl::StrCat(
          target.host, " (its agent runs, but has not reached this machine at ",
          absl::StrJoin(server_->addresses(), " or "), "; is there a firewall between?)"));
    } else {
      late.push_back(absl::StrCat(target.host, target.local ? " (its agent has not answered yet)"
                                                            : " (no answer through ssh yet)"));
    }
  }
  if (!late.empty()) {
    return Fail(absl::StrCat("gave up after ", absl::FormatDuration(plan_.start_timeout),
                             " of waiting for ", absl::StrJoin(late, ", "),
                             "; --start-timeout gives more time"),
                kUsageError);
  }
  phase_ = Phase::kRunning;
  deadline_ = absl::InfiniteFuture();
}

// Says in one line why there is no job, and ends what there is of it.
void Job::Fail(absl::string_view message, int exit_code) {
  output_.Say(absl::StrCat("horovodrun: error: ", message, "\n"));
  explained_ = true;
  Stop(std::string(message), exit_code, absl::ZeroDuration());
}

void Job::Stop(const std::string& reason, int exit_code, absl::Duration grace) {
  exit_code_ = exit_code;
  phase_ = Phase::kEnding;
  lost_deadline_ = absl::InfiniteFuture();
  SetDeadline(grace + kDaemonPatience);
  if (server_ == nullptr) return;
  server_->RequestStop(reason, exit_code, grace);
  EndUnattached();
}

// Agents that the daemon does not know hear nothing from it. No worker runs under them.
void Job::EndUnattached() {
  const std::set<std::string> attached = AttachedHosts(*server_);
  for (size_t i = 0; i < fleet_.size(); ++i) {
    if (attached.count(fleet_.target(i).host) > 0) continue;
    fleet_.CloseInput(i);
    // An ssh that still connects does not look at its input.
    if (!fleet_.ready(i)) fleet_.Kill(i);
  }
}

void Job::Hurry() {
  // The first time, what is left to read may still be read.
  if (stop_signals_ > 1) output_.Abandon();
  if (server_ != nullptr) server_->RequestStop("killed", exit_code_, absl::ZeroDuration());
  fleet_.CloseAllInputs();
  phase_ = Phase::kClosing;
  SetDeadline(kHurryTime);
}

void Job::Escalate() {
  if (stop_signals_ < 2 && output_.HasBacklog()) return SetDeadline(kAgentExitTime);
  if (phase_ == Phase::kEnding) {
    fleet_.CloseAllInputs();
    phase_ = Phase::kClosing;
    return SetDeadline(kAgentExitTime);
  }
  fleet_.KillAll();
  phase_ = Phase::kKilling;
  SetDeadline(kAgentExitTime);
}

void Job::Report() {
  if (!verdict_.has_value() || verdict_->success || (explained_ && verdict_->rank < 0)) return;
  if (explained_ && stop_signals_ == 0) return;
  for (const std::string& line : lost_) output_.Say(absl::StrCat("horovodrun: ", line, "\n"));
  output_.Say(RootCauseBlock(*verdict_));
}

// All that was said gets read, unless the user does not want to wait for that.
void Job::Flush() {
  output_.NotifyDrained([this] { events_.Post(OutputIsDrained{}); });
  while (!drained_) {
    const std::optional<JobEvent> event = events_.Next(absl::InfiniteFuture());
    if (std::holds_alternative<StopSignal>(*event)) output_.Abandon();
    if (std::holds_alternative<OutputIsDrained>(*event)) drained_ = true;
  }
}

void Job::Verbose(absl::string_view text) {
  if (!plan_.verbose) return;
  output_.Say(absl::StrCat(
      "horovodrun: ",
      absl::FormatDuration(absl::Trunc(clock_.Now() - start_time_, absl::Milliseconds(1))), ": ",
      text, "\n"));
}

}  // namespace

int RunJob(const JobPlan& plan, const JobDependencies& dependencies, JobEventQueue& events,
           OutputSink& output) {
  return Job(plan, dependencies, events, output).Run();
}

}  // namespace hvd
