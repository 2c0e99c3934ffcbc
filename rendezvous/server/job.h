// One job on a server: the state machine, the thread that drives it, and its two gRPC services.
#ifndef RENDEZVOUS_SERVER_JOB_H_
#define RENDEZVOUS_SERVER_JOB_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/failpoint/failpoint.h"
#include "rendezvous/journal/journal.h"
#include "rendezvous/membership/membership.h"
#include "rendezvous/reporting/job_history.h"
#include "rendezvous/server/agent_service.h"
#include "rendezvous/server/driver.h"
#include "rendezvous/server/job_recovery.h"
#include "rendezvous/server/rendezvous_service.h"

namespace hvd::rendezvous::server {

struct JobOptions {
  std::string job_id;
  policy::JobSpec spec;
  std::string secret_key;               // the epochs' secrets are derived from it
  journal::Journal* journal = nullptr;  // borrowed; null: no journal
  // Carry out these effects in place of agents. All three are set, or none.
  std::function<void(const membership::StartWorkerEffect&)> start_worker;
  std::function<void(const membership::StopWorkersEffect&)> stop_workers;
  std::function<void(const membership::EndJobEffect&)> end_host;
  // A withdrawn host has left the job; a later offer may return it. May be null, like the callbacks
  // below.
  std::function<void(const std::string& host)> on_host_held;
  // All callbacks come from the job's thread and must not block.
  std::function<void(const membership::Verdict&)> on_finished;
  std::function<void(const membership::Notice&)> on_notice;
  std::function<void(const absl::Status&)> on_journal_error;  // once; no event is applied after it
  std::function<void(const pb::FaultDone&)> on_fault_done;    // from any thread
};

// Thread-safe. Calls to the services after Close fail with the job's end status, until the object
// is destroyed.
class Job {
 public:
  // Creates the job, or resumes it from its journal if that has events.
  // Errors:
  //   - FailedPrecondition: according to its journal, the job has ended; says how.
  //   - Others: those of Journal::Replay.
  static absl::StatusOr<std::unique_ptr<Job>> Create(JobOptions options, Clock& clock);
  // Calls Close. REQUIRES: not busy().
  ~Job();

  const std::string& id() const { return options_.job_id; }
  RendezvousService& rendezvous() { return rendezvous_; }
  AgentService& agents() { return agents_; }

  // Whether the job was resumed, and the hosts that are awaited in that case.
  bool resumed() const { return resumed_; }
  const std::vector<membership::Membership::AttachedHost>& awaited() const { return awaited_; }

  // Queues an event for the machine.
  void Post(membership::Event event);

  // Passes a report to `use`, on the job's thread between two events; at once if the caller is on
  // that thread.
  void Report(const std::function<void(const reporting::JobReport&)>& use);
  // The current report, or the last one if the job does not answer within kPatience. Empty: the job
  // was closed before it could answer.
  std::optional<reporting::JobReport> Report();
  // The view of Report, with its times converted to those of the clock. Default-constructed if
  // there is no report.
  membership::Membership::View Describe();

  // See Driver.
  absl::Duration BusyFor() { return driver_.BusyFor(); }

  static constexpr absl::Duration kPatience = absl::Seconds(5);
  // Of what members have sent and the machine has not handled yet, as while the disk hangs. Far
  // more than the largest job sends at once; bounds what a faulty member takes from other jobs.
  static constexpr size_t kMostWaiting = size_t{64} << 20;

  // Whether the job has a journal, from which another process can resume it.
  bool is_kept() const { return options_.journal != nullptr; }

  // Stops the machine, then ends all calls and streams, and every later one. Only the first call
  // has an effect.
  void Close();

  // Whether gRPC still holds calls or streams. Once false after Close, it stays false.
  bool busy();

 private:
  Job(JobOptions options, Recovered recovered, Clock& clock);
  RendezvousServiceOptions MakeRendezvousOptions();
  AgentServiceOptions MakeAgentOptions();
  StateMachine MakeMachine();
  absl::Time Now() const { return clock_.Now() + shift_; }
  bool Record(const std::vector<const membership::Event*>& events, absl::Time now);
  absl::Status EndStatus() const;
  absl::Status CheckRoom();

  void CarryOut(const membership::StartWorkerEffect& effect) {
    options_.start_worker ? options_.start_worker(effect) : agents_.Handle(effect);
    FAILPOINT("daemon.start_worker.sent");
  }
  void CarryOut(const membership::StopWorkersEffect& effect) {
    options_.stop_workers ? options_.stop_workers(effect) : agents_.Handle(effect);
    FAILPOINT("daemon.stop_workers.sent");
  }
  void CarryOut(const membership::SampleWorkerEffect& effect) { agents_.Handle(effect); }
  void CarryOut(const membership::KeepCommitsEffect& effect) {
    agents_.Handle(effect);
    FAILPOINT("daemon.keep_commits.sent");
  }
  void CarryOut(const membership::HoldHostEffect& effect);
  void CarryOut(const membership::EndJobEffect& effect) {
    options_.end_host ? options_.end_host(effect) : agents_.Handle(effect);
    FAILPOINT("daemon.end_host.sent");
  }
  void CarryOut(const membership::ReplyWorld& effect) {
    rendezvous_.Handle(effect);
    FAILPOINT("daemon.world.answered");
  }
  void CarryOut(const membership::ReplyDeferred& effect) {
    rendezvous_.Handle(effect);
    FAILPOINT("daemon.deferred.answered");
  }
  void CarryOut(const membership::ReplyReleased& effect) {
    rendezvous_.Handle(effect);
    FAILPOINT("daemon.released.answered");
  }
  void CarryOut(const membership::ReplyWatch& effect) {
    rendezvous_.Handle(effect);
    FAILPOINT("daemon.watch.answered");
  }
  void CarryOut(const membership::ReplyExchange& effect) {
    rendezvous_.Handle(effect);
    FAILPOINT("daemon.exchange.answered");
  }
  void CarryOut(const membership::ReplyStatus& effect) {
    rendezvous_.Handle(effect);
    FAILPOINT("daemon.report.answered");
  }
  void CarryOut(const membership::Notice& notice);
  void CarryOut(const membership::JobFinished& effect);

  const JobOptions options_;
  Clock& clock_;
  const bool resumed_;
  const std::vector<membership::Membership::AttachedHost> awaited_;
  const absl::Duration shift_;  // added to the clock's time to get the journal's time
  // Used by the driver's thread only, like the two below.
  const std::unique_ptr<membership::Membership> machine_;
  reporting::JobHistory history_;
  bool over_ = false;
  RendezvousService rendezvous_;
  AgentService agents_;
  absl::Mutex mu_;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  std::shared_ptr<const reporting::JobReport> newest_report_ ABSL_GUARDED_BY(mu_);
  Driver driver_;  // the last member: its thread uses the others
};

}  // namespace hvd::rendezvous::server

#endif  // RENDEZVOUS_SERVER_JOB_H_
