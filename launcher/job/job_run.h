// The state machine behind RunJob (job.h): a job's phases, and the handling of each event.
#ifndef LAUNCHER_JOB_JOB_RUN_H_
#define LAUNCHER_JOB_JOB_RUN_H_

#include <atomic>
#include <csignal>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/console/output_sink.h"
#include "base/net/http_listener.h"
#include "launcher/faults/job_rehearsal.h"
#include "launcher/job/agent_fleet.h"
#include "launcher/job/elastic_fleet.h"
#include "launcher/job/job.h"
#include "launcher/job/job_events.h"
#include "launcher/job/job_start.h"
#include "launcher/job/job_status.h"
#include "launcher/job/rank_filter.h"
#include "launcher/job/search_warnings.h"
#include "launcher/plan/plan.h"
#include "rendezvous/reporting/job_summary.h"
#include "rendezvous/reporting/wait_reporter.h"
#include "rendezvous/server/server.h"

namespace hvd::launcher::job {

// Passes once through the phases, in order. Not thread-safe.
class JobRun {
 public:
  JobRun(const plan::JobPlan& plan, const JobDependencies& dependencies, JobEventQueue& events,
         console::OutputSink& output)
      : plan_(plan),
        events_(events),
        output_(output),
        clock_(events.clock()),
        start_time_(clock_.Now()),
        dependencies_(dependencies),
        filter_(plan.shown_ranks),
        fleet_(dependencies.start_agent, events, output, filter_),
        progress_(plan.elastic.has_value() ? plan.elastic->min_workers : plan.num_proc) {}

  int Run();

 private:
  // The time for an agent without work to exit by itself, and again the time to exit after its
  // input is closed.
  static constexpr absl::Duration kAgentExitTime = absl::Seconds(3);
  // The grace of the workers when a signal ends the job.
  static constexpr absl::Duration kInterruptGrace = absl::Seconds(5);
  static constexpr int kTerminated = 128 + SIGTERM;  // the exit code

  enum class Phase {
    kStarting,  // until every host has attached, or start_timeout has passed
    kRunning,
    kDraining,  // elastic: all workers leave at their next commit
    kEnding,    // the daemon ends the job; agents exit by themselves
    kClosing,   // all agents' inputs are closed
    kKilling,
  };

  void Start();
  absl::Status ServeMetrics();
  absl::Status StartFleet();
  void StartElasticFleet();
  void Handle(const JobEvent& event);
  void On(const AgentIsReady& event);
  void On(const AgentHasRefused& event);
  void On(const AgentHasExited& event);
  void On(const JobHasFinished& event);
  void On(const NoticeHappened& event);
  void On(const HostsFound& event);
  void On(const StopSignal& event);
  void On(const NoticeSignal& event);
  void On(const OutputIsBroken& event);
  void On(const OutputIsDrained&) {}  // Flush waits for it
  void On(const FaultIsDone& event);

  void OnDeadline();
  void CheckRefused();
  bool IsNewWorld(const rendezvous::membership::Notice& notice) const;
  void UpdateRanks();
  // Handle the unexpected exit of an agent.
  void AddLost(const AgentHasExited& event);
  void ExplainLoss(const AgentHasExited& event);
  // ---- Waiting for hosts and workers: job_waiting.cc
  void CheckStarted();
  absl::Status AllStarted();
  void ReportWaiting();
  void AddWhatIsKnown(rendezvous::membership::Membership::View& view);
  // ---- The end: job_ending.cc
  void Drain(const std::string& said, const std::string& reason, int exit_code);
  void AwaitDrained();
  void WatchReader();
  void CheckReader();
  void OnEnding(const std::string& text);
  void BeginEnd(absl::Duration time);
  void Fail(absl::string_view message, int exit_code);
  void Stop(const std::string& reason, int exit_code, absl::Duration grace);
  std::set<std::string> AttachedHosts();
  void EndUnattached();
  void Hurry();
  void Escalate();
  std::string LastLine(const rendezvous::membership::Membership::View& view) const;
  void Report(const rendezvous::membership::Membership::View& view);
  void ReportRehearsal(const rendezvous::membership::Membership::View& view);
  void Flush();

  bool Ending() const { return phase_ >= Phase::kEnding; }
  absl::Time NextDeadline() const;
  void SetDeadline(absl::Duration from_now) { deadline_ = clock_.Now() + from_now; }
  // Escapes control characters: the words may be those of other processes.
  void SayLine(absl::string_view text);
  void Warn(absl::string_view text);
  void Verbose(absl::string_view text);

  const plan::JobPlan& plan_;
  JobEventQueue& events_;
  console::OutputSink& output_;
  Clock& clock_;
  const absl::Time start_time_;
  const JobDependencies& dependencies_;
  StartedDaemon daemon_;
  std::unique_ptr<JobFile> job_file_;
  std::unique_ptr<rendezvous::server::Server> server_;
  std::unique_ptr<net::HttpListener> metrics_;
  RankFilter filter_;
  AgentFleet fleet_;                               // ends before the server
  std::optional<ElasticFleet> elastic_;            // of an elastic job, once the daemon runs
  std::optional<JobStatus> status_;                // likewise
  std::optional<faults::JobRehearsal> rehearsal_;  // likewise, of a rehearsal
  std::unique_ptr<HostSearch> search_;
  SearchWarnings search_warnings_;
  rendezvous::reporting::JobSummary progress_;
  rendezvous::reporting::WaitReporter waiting_;

  Phase phase_ = Phase::kStarting;
  absl::Time deadline_ = absl::InfiniteFuture();         // of the phase
  absl::Time lost_deadline_ = absl::InfiniteFuture();    // for the verdict on a lost agent
  absl::Time reader_deadline_ = absl::InfiniteFuture();  // for what waits during the drain
  std::shared_ptr<std::atomic<bool>> output_is_taken_;   // that output; null before the drain
  std::vector<std::string> lost_;                        // premature exits of agents, for messages
  std::optional<rendezvous::membership::Verdict> verdict_;
  int exit_code_ = 1;
  bool explained_ = false;  // the reason for the end was reported
  int stop_signals_ = 0;
  // A scheduler has asked for the end (SIGTERM), or a terminal has closed: SIGKILL may follow.
  bool is_terminated_ = false;
  bool output_is_lost_ = false;  // some could not be written
  bool has_extended_ = false;    // the end has waited once for the reader of the output
  bool was_stopped_ = false;     // somebody has asked for the end, by a signal or by the daemon
  bool was_drained_ = false;     // and the daemon was to end the job at a commit
};

}  // namespace hvd::launcher::job

#endif  // LAUNCHER_JOB_JOB_RUN_H_
