#include "launcher/job/job.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/text/duration_text.h"
#include "base/text/names.h"
#include "launcher/job/job_run.h"
#include "proto/agent.pb.h"
#include "rendezvous/server/status_pages.h"

namespace hvd::launcher::job {
namespace {

constexpr int kUsageError = 2;
// How long to wait for the daemon's verdict after an agent has ended. The daemon itself may wait
// for a better explanation, and then for the other agents.
constexpr absl::Duration kVerdictTime = absl::Seconds(10);
// The same if no worker had been started: then the daemon may not know the agent.
constexpr absl::Duration kUnattachedTime = absl::Seconds(2);

std::string Processes(int n) { return absl::StrCat(n, n == 1 ? " process" : " processes"); }

std::string SignalName(int signal) { return absl::StrCat("SIG", sigabbrev_np(signal)); }

}  // namespace

int JobRun::Run() {
  Start();
  while (!Ending() || !fleet_.AllExited()) {
    const std::optional<JobEvent> event = events_.Next(NextDeadline());
    if (event.has_value()) {
      Handle(*event);
    } else {
      OnDeadline();
    }
  }
  Verbose("every agent has exited");
  // Users of the server end before it: the status line, the job file that names its address, the
  // metrics listener whose handler calls it.
  status_.reset();
  job_file_.reset();
  metrics_.reset();
  rendezvous::membership::Membership::View last_view;
  if (elastic_.has_value() && server_ != nullptr) last_view = server_->Describe();
  server_.reset();
  Report(last_view);
  ReportRehearsal(last_view);
  if (dependencies_.event_log != nullptr) {
    dependencies_.event_log->Flush();
    dependencies_.event_log->OnLost(nullptr);
  }
  Flush();
  return exit_code_ == 0 && output_is_lost_ ? 1 : exit_code_;
}

void JobRun::Start() {
  deadline_ = start_time_ + plan_.start_timeout;
  if (dependencies_.event_log != nullptr) {
    dependencies_.event_log->OnLost([this](const std::string& what) { Warn(what); });
  }
  if (plan_.verbose) output_.Say(absl::StrCat("horovodrun: ", plan::PlanTable(plan_)));
  absl::StatusOr<StartedDaemon> daemon = StartDaemon(
      plan_, dependencies_.start_server,
      // These callbacks come from the daemon's thread: they do no more than what can't wait for the
      // loop.
      [this](const rendezvous::membership::Verdict& verdict) {
        if (dependencies_.event_log != nullptr) dependencies_.event_log->Write(verdict);
        events_.Post(JobHasFinished{verdict});
      },
      [this](const rendezvous::membership::Notice& notice) {
        if (dependencies_.event_log != nullptr) dependencies_.event_log->Write(notice);
        if (IsNewWorld(notice)) filter_.AwaitRanks();
        events_.Post(NoticeHappened{notice, clock_.Now()});
      },
      [this](const pb::FaultDone& done) {
        events_.Post(FaultIsDone{done.fault_id(), done.problem(), clock_.Now()});
      });
  if (!daemon.ok()) return Fail(daemon.status().message(), 1);
  daemon_ = *std::move(daemon);
  server_ = std::move(daemon_.server);
  Verbose(absl::StrCat("the daemon listens on ", absl::StrJoin(server_->addresses(), ", ")));
  auto job_file = WriteJobFile(plan_, *daemon_.authority, daemon_.job_id, server_->addresses());
  if (job_file.ok()) {
    job_file_ = *std::move(job_file);
  } else {
    Verbose(absl::StrCat("horovodrun status won't find this job: ", job_file.status().message()));
  }
  // Only starts the clock of the first wait; nothing is due yet.
  waiting_.Check(server_->Describe(), clock_.Now());
  const absl::Status serving = ServeMetrics();
  if (!serving.ok()) return Fail(absl::StrCat("--metrics: ", serving.message()), kUsageError);
  if (plan_.elastic.has_value()) return StartElasticFleet();
  const absl::Status started = StartFleet();
  if (!started.ok()) return Fail(started.message(), kUsageError);
  Verbose(absl::StrCat("agents started: ", fleet_.agents().size()));
}

absl::Status JobRun::ServeMetrics() {
  if (plan_.metrics.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(metrics_,
                   net::HttpListener::Start(plan_.metrics, [this](const std::string& path) {
                     return rendezvous::server::AnswerStatusPage(path, *server_);
                   }));
  output_.Say(absl::StrCat("horovodrun: metrics at http://", metrics_->address(), "/metrics\n"));
  return absl::OkStatus();
}

absl::Status JobRun::StartFleet() {
  for (const plan::PlannedHost& host : plan_.hosts) {
    ASSIGN_OR_RETURN(
        const pb::AgentBootstrap bootstrap,
        MakeBootstrap(plan_, host, *daemon_.authority, daemon_.job_id, server_->addresses()));
    RETURN_IF_ERROR(fleet_.Start(host.target, bootstrap).status());
  }
  return absl::OkStatus();
}

void JobRun::StartElasticFleet() {
  status_.emplace(output_, *server_, clock_);
  if (plan_.rehearsal.has_value()) {
    rehearsal_.emplace(*plan_.rehearsal, plan_.elastic->spec, *server_, clock_,
                       [this](const std::string& line) { SayLine(line); });
  }
  elastic_.emplace(
      fleet_, *server_, clock_,
      [this](const plan::PlannedHost& host) {
        return MakeBootstrap(plan_, host, *daemon_.authority, daemon_.job_id, server_->addresses());
      },
      [this](const std::string& line) { Warn(line); });
  if (!plan_.source->is_dynamic()) {
    elastic_->SetHosts(plan_.hosts);
    return CheckRefused();
  }
  search_ =
      dependencies_.search_hosts([this](absl::StatusOr<std::vector<plan::PlannedHost>> hosts) {
        events_.Post(HostsFound{std::move(hosts)});
      });
}

absl::Time JobRun::NextDeadline() const {
  absl::Time deadline = std::min({deadline_, lost_deadline_, reader_deadline_});
  if (!Ending()) deadline = std::min(deadline, waiting_.NextDue());
  if (status_.has_value()) deadline = std::min(deadline, status_->NextDue());
  if (rehearsal_.has_value() && !Ending()) deadline = std::min(deadline, rehearsal_->NextDue());
  return elastic_.has_value() && !Ending() ? std::min(deadline, elastic_->NextDue()) : deadline;
}

void JobRun::Handle(const JobEvent& event) {
  std::visit([this](const auto& e) { On(e); }, event);
}

void JobRun::On(const AgentIsReady& event) {
  fleet_.MarkReady(event.agent);
  if (elastic_.has_value() && !Ending()) elastic_->OnReady(event.agent);
  if (!event.warning.empty()) Warn(event.warning);
  Verbose(absl::StrCat("the agent on ", fleet_.target(event.agent).host, " is ready"));
}

void JobRun::On(const AgentHasRefused& event) {
  if (Ending()) return;
  if (elastic_.has_value()) return elastic_->OnRefused(event.agent, event.message);
  const std::string& host = fleet_.target(event.agent).host;
  const bool names_host = absl::StrContains(event.message, host);
  Fail(names_host ? event.message : absl::StrCat(host, ": ", event.message), kUsageError);
}

void JobRun::On(const AgentHasExited& event) {
  fleet_.MarkExited(event.agent);
  if (Ending()) return ExplainLoss(event);
  if (elastic_.has_value()) {
    elastic_->OnExited(event.agent, event.exit);
    return CheckRefused();
  }
  const spawn::AgentTarget& target = fleet_.target(event.agent);
  if (!fleet_.ready(event.agent)) {
    const bool is_listed = !target.local && !plan_.hosts_source.empty();
    return Fail(absl::StrCat(spawn::ExplainEarlyExit(target, event.exit),
                             is_listed ? absl::StrCat("; it is a host of ", plan_.hosts_source,
                                                      ": give others with -np and -H")
                                       : ""),
                kUsageError);
  }
  AddLost(event);
  // The daemon also detects the loss and gives the verdict, unless the agent was not attached yet.
  // lost_deadline_ covers that case.
  const rendezvous::membership::Membership::View view = server_->Describe();
  const bool began = std::any_of(view.hosts.begin(), view.hosts.end(),
                                 [](const auto& host) { return !host.workers.empty(); });
  const absl::Duration time = began ? kVerdictTime : kUnattachedTime;
  lost_deadline_ = std::min(lost_deadline_, clock_.Now() + time);
}

void JobRun::AddLost(const AgentHasExited& event) {
  if (event.exit.exit_code == 0 && event.exit.signal == 0) return;
  lost_.push_back(absl::StrCat("the agent on ", fleet_.target(event.agent).host,
                               " has ended: ", DescribeExit(event.exit)));
}

// The daemon has given its verdict on a lost host before the launcher noticed the exit of its
// agent: the exit then explains the verdict.
void JobRun::ExplainLoss(const AgentHasExited& event) {
  const bool by_host = phase_ == Phase::kEnding && verdict_.has_value() && verdict_->rank < 0;
  if (by_host && verdict_->host == fleet_.target(event.agent).host) AddLost(event);
}

void JobRun::On(const JobHasFinished& event) {
  Verbose(absl::StrCat("verdict: ", event.verdict.summary));
  if (status_.has_value()) status_->WakeUp();
  verdict_ = event.verdict;
  // A failure that the launcher has reported itself keeps its exit code.
  if (!explained_ || was_stopped_) exit_code_ = event.verdict.exit_code;
  if (phase_ > Phase::kEnding) return;
  BeginEnd(kAgentExitTime);
  EndUnattached();
}

void JobRun::On(const NoticeHappened& event) {
  if (rehearsal_.has_value()) rehearsal_->Take(event.notice, event.when);
  if (IsNewWorld(event.notice)) UpdateRanks();
  if (status_.has_value()) status_->WakeUp();
  waiting_.WakeUp(clock_.Now());
  if (event.notice.kind == rendezvous::membership::Notice::Kind::kJobEnding)
    return OnEnding(event.notice.text);
  const rendezvous::reporting::JobSummary::Line line = progress_.Add(event.notice, event.when);
  // In a static job only stalls are reported at once; the other events appear in the report at its
  // end.
  const bool matters =
      elastic_.has_value() || event.notice.kind == rendezvous::membership::Notice::Kind::kStalled;
  if (line.important && matters) {
    SayLine(line.text);
  } else {
    Verbose(line.text);
  }
}

bool JobRun::IsNewWorld(const rendezvous::membership::Notice& notice) const {
  return plan_.elastic.has_value() &&
         notice.kind == rendezvous::membership::Notice::Kind::kWorldFormed;
}

void JobRun::UpdateRanks() {
  std::map<uint64_t, int> ranks;
  for (const auto& host : server_->Describe().hosts) {
    for (const auto& worker : host.workers) ranks[worker.id.value()] = worker.rank;
  }
  filter_.SetRanks(std::move(ranks));
}

void JobRun::On(const FaultIsDone& event) {
  if (rehearsal_.has_value()) rehearsal_->Answer(event.fault, event.problem, event.when);
}

void JobRun::On(const HostsFound& event) {
  // A list that was posted before the search ended must not bring drained hosts back.
  if (phase_ >= Phase::kDraining) return;
  const std::string warning = search_warnings_.Check(event.hosts.status(), clock_.Now());
  // A first discovery that fails is a mistake of the user, and ends the job. Later failures are
  // only warnings: the last list remains valid.
  if (!search_warnings_.ever_succeeded()) {
    return Fail(event.hosts.status().message(), kUsageError);
  }
  if (!warning.empty()) Warn(warning);
  if (!event.hosts.ok()) return;
  elastic_->SetHosts(*event.hosts);
  CheckRefused();
}

void JobRun::On(const StopSignal& event) {
  // A terminal that closes after the end has begun, whatever began it, asks for no more haste.
  if (event.signal == SIGHUP && (phase_ == Phase::kDraining || Ending())) return;
  ++stop_signals_;
  was_stopped_ = true;
  is_terminated_ = is_terminated_ || event.signal == SIGTERM || event.signal == SIGHUP;
  if (Ending()) return Hurry();
  explained_ = true;
  // SIGHUP: a terminal that is closed, with its session, takes no more than a scheduler does.
  const bool drains = event.signal == SIGTERM || event.signal == SIGHUP;
  if (drains && elastic_.has_value() && phase_ < Phase::kDraining) {
    const std::string how = absl::StrCat("interrupted by ", SignalName(event.signal));
    return Drain(how, absl::StrCat("horovodrun was ", how), 128 + event.signal);
  }
  const std::string what = plan_.elastic.has_value() ? "the job" : Processes(plan_.num_proc);
  if (event.signal == 0) {
    const std::string reason = "the program that started horovodrun is gone";
    output_.Say(absl::StrCat("horovodrun: ", reason, " (stdin has ended); stopping ", what, "\n"));
    return Stop(reason, 128 + SIGHUP, kInterruptGrace);
  }
  // A signal during a drain ends the job without a further grace period.
  const bool at_once = phase_ == Phase::kDraining;
  output_.Say(absl::StrCat(
      event.signal == SIGINT ? "\n" : "", "horovodrun: interrupted by ", SignalName(event.signal),
      at_once ? "; killing the workers"
              : absl::StrCat("; stopping ", what, " (Ctrl-C again to kill at once)"),
      "\n"));
  const absl::Duration grace = at_once ? absl::ZeroDuration() : kInterruptGrace;
  Stop(absl::StrCat("horovodrun was interrupted by ", SignalName(event.signal)), 128 + event.signal,
       grace);
}

// Ends nothing: what a notice means is decided by the script.
void JobRun::On(const NoticeSignal& event) {
  Verbose(absl::StrCat(SignalName(event.signal), " is passed on to the workers"));
  if (server_ != nullptr) server_->SignalWorkers(event.signal);
}

// If the reader of the output is gone (EPIPE, EIO), the job ends like any program in that case, in
// good order. Any other write error loses output that the user wants: the job ends in the same way,
// but the exit code is not 0, even if all workers have succeeded.
void JobRun::On(const OutputIsBroken& event) {
  const bool reader_left = event.error == EPIPE || event.error == EIO;
  const std::string reason =
      reader_left ? "nobody reads horovodrun's output any more"
                  : absl::StrCat("can't write to ", event.is_stderr ? "stderr" : "stdout", ": ",
                                 std::strerror(event.error));
  output_is_lost_ = output_is_lost_ || !reader_left;
  const bool is_ending = phase_ >= Phase::kDraining;
  if (is_ending && !reader_left) output_.Say(absl::StrCat("horovodrun: error: ", reason, "\n"));
  if (is_ending) return;
  explained_ = true;
  const int code = reader_left ? 128 + SIGPIPE : 1;
  if (elastic_.has_value()) {
    was_stopped_ = true;  // the daemon's verdict has the exit code
    return Drain(reason, reason, code);
  }
  SayLine(absl::StrCat(reason, "; stopping ", Processes(plan_.num_proc)));
  Stop(reason, code, kInterruptGrace);
}

// Handles the first deadline that has passed. If others have passed too, the next iteration of Run
// handles them at once.
void JobRun::OnDeadline() {
  const absl::Time now = clock_.Now();
  if (status_.has_value() && now >= status_->NextDue()) return status_->Update();
  if (now >= reader_deadline_) return CheckReader();
  if (Ending() && now >= deadline_) return Escalate();
  if (Ending()) return;
  if (rehearsal_.has_value() && now >= rehearsal_->NextDue()) return rehearsal_->Look();
  if (phase_ == Phase::kDraining && now >= deadline_) {
    return Stop("the daemon has not ended it in time", exit_code_ == 0 ? kTerminated : exit_code_,
                absl::ZeroDuration());
  }
  if (elastic_.has_value() && now >= elastic_->NextDue()) {
    elastic_->StartDue();
    return CheckRefused();
  }
  if (now >= lost_deadline_) {
    return Fail(absl::StrCat(lost_.empty() ? "an agent has ended" : absl::StrJoin(lost_, "; "),
                             ", and the job with it"),
                1);
  }
  if (now >= deadline_) return CheckStarted();
  if (now >= waiting_.NextDue()) ReportWaiting();
}

// Ends the job if every host has refused: such a mistake, for example a command that exists on no
// host, does not go away by waiting.
void JobRun::CheckRefused() {
  const absl::Status refused = elastic_->Refused();
  if (!refused.ok()) Fail(refused.message(), kUsageError);
}

void JobRun::Warn(absl::string_view text) { SayLine(absl::StrCat("warning: ", text)); }

void JobRun::SayLine(absl::string_view text) {
  output_.Say(absl::StrCat("horovodrun: ", text::OnOneLine(text), "\n"));
}

void JobRun::Verbose(absl::string_view text) {
  if (!plan_.verbose) return;
  SayLine(absl::StrCat(text::DurationText(clock_.Now() - start_time_), ": ", text));
}

int RunJob(const plan::JobPlan& plan, const JobDependencies& dependencies, JobEventQueue& events,
           console::OutputSink& output) {
  return JobRun(plan, dependencies, events, output).Run();
}

}  // namespace hvd::launcher::job
