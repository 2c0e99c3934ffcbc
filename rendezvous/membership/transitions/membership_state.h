// The state of the membership machine, and its transitions, one source file per theme. Included by
// membership*.cc only.
#ifndef RENDEZVOUS_MEMBERSHIP_TRANSITIONS_MEMBERSHIP_STATE_H_
#define RENDEZVOUS_MEMBERSHIP_TRANSITIONS_MEMBERSHIP_STATE_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/ids.h"
#include "rendezvous/membership/commit_places.h"
#include "rendezvous/membership/epochs.h"
#include "rendezvous/membership/events.h"
#include "rendezvous/membership/hosts.h"
#include "rendezvous/membership/membership.h"
#include "rendezvous/membership/root_cause.h"
#include "rendezvous/membership/standing.h"
#include "rendezvous/membership/workers.h"
#include "rendezvous/policy/failure_counter.h"
#include "rendezvous/policy/slot_health.h"

namespace hvd::rendezvous::membership {

// Consists of Hosts, Workers and Epochs, each with its invariants; the start and the end of the
// job; and the failure budget of an elastic job.
//
// Invariants of the whole:
// - `settle_deadline` is finite only after a failure, and a job that has ended has a verdict;
// - a parked call is in exactly one of Worker::join, Epochs::watches and Epochs::rounds; it is
//   removed in the same step that emits its answer; none is parked after the verdict;
// - a static job's worlds contain all workers, so no further world can form once a worker is gone.
//
// Handlers of per-worker events must not scan all workers or hosts: jobs are large.
struct Membership::State {
  // An elastic job that was asked to end: it does so when no worker is left.
  struct Ending {
    std::string reason;
    int exit_code = 0;
    absl::Time deadline;  // from here on it does not wait for workers

    template <typename Fields>
    void Keep(Fields& fields) {
      auto& [reason, exit_code, deadline] = *this;
      fields("reason", reason, "exit_code", exit_code, "deadline_ns", deadline);
    }
  };

  using Life = lifecycle::WorkerLifecycle::Life;
  using Move = lifecycle::WorkerLifecycle::Move;

  // The wait for workers that are still starting, when a world could form without them.
  static constexpr absl::Duration kFormPatience = absl::Seconds(10);

  State(policy::JobSpec job_spec, absl::Time now, const ReconcileThrottle& reconcile_throttle);

  // membership.cc: everything but `spec`, `throttle` and `effects`, which is empty between events
  template <typename Fields>
  void Keep(Fields& fields);

  // membership_hosts.cc
  void On(const HostJoined& event, absl::Time now);
  void On(const HostLost& event, absl::Time now);
  void On(const WorkerStarted& event, absl::Time now);
  void StartWhenComplete();
  TorchGroup TorchGroupOf(const Worker& worker);
  void LoseStartedHost(const Host& host, absl::string_view reason, absl::Time now);
  // "hosts b, c to attach (1 of 3 attached)"
  std::string MissingText() const;

  // membership_hosts_elastic.cc
  void On(const HostsDiscovered& event, absl::Time now);
  void On(const HostDraining& event, absl::Time now);
  void TakeInHost(const HostJoined& event, absl::Time now);
  void StopStrangers(const Host& host, const HostJoined& event);
  void UndoDrain(Host* host);
  void StartDrain(Host* host, absl::Duration grace, const std::string& reason, bool by_discovery,
                  absl::Time now);
  void ExpectFewerAtStart(const Host& drained);
  static std::string LeftText(const Host& host);
  void LoseElasticHost(Host* host, const std::string& reason, absl::Time now);
  void LeaveLate(Host* host, const std::string& why);
  void LeaveLate(const Worker* worker, const std::string& what);
  void EndDrainedHosts(absl::Time now);
  void ReportLostCommit(Host* host);
  void ReportLeftHosts();
  void ForgetDepartedHosts();

  // membership_hosts.cc: offers, which limit the hosts and slots that may take part
  void OfferToStaticJob(const HostsDiscovered& event);
  void FollowOfferOfStaticJob(const std::string& host);
  void FollowOffer(Host* host);
  void Hold(Host* host, bool took_part);
  void TakeIn(Host* host);
  void ResumeHeld(Host* host);

  // membership_restart.cc: agents that attach again after a restart of the daemon
  void On(const Restarted& event, absl::Time now);
  bool Reattach(const HostJoined& event);
  void LoseAwayHosts(absl::Time now);
  void LoseAwayHost(Host* host, const std::string& reason, absl::Time now);

  // membership_reach.cc: hosts that are out of reach. Proof that a broken world no longer trains,
  // before the next one forms
  void MarkUnreachable(Worker* worker, absl::Time now);
  void MarkReachable(const Host& host, absl::Time now);
  void ReportCutOff(absl::Time now);
  // and rests of hosts that do not reach each other
  void NoteUnreached(const Worker& worker, const JoinRequested& event);
  bool LostMember() const;
  bool IsAvoided(const Way& way);
  bool RestUnreachedHost(absl::Time now);
  void RememberWays(uint64_t commit);
  void EndRests(absl::Time now);
  bool CanDoWithout(const Host& host) const;

  // membership_calls.cc
  void On(const JoinRequested& event, absl::Time now);
  void On(const WatchRequested& event, absl::Time now);
  void On(const ExchangeRequested& event, absl::Time now);
  void On(const Reported& event, absl::Time now);
  void On(const ProgressReported& event, absl::Time now);
  void On(const CallCancelled& event, absl::Time now);
  absl::Status Admit(const WorkerKey& key, Worker* worker);
  absl::Status CheckSpeaker(const WorkerKey& key, const Worker* worker) const;
  void Supersede(Worker* worker, Incarnation newer);
  void Park(Worker* worker, const JoinRequested& event, absl::Time now);
  void Leave(const Worker& worker, const JoinRequested& event);
  void BreakEpoch(const std::string& reason);
  absl::Status CheckMember(const WorkerKey& key, const Worker& worker, Epoch wanted) const;
  bool WasLast(const ProgressReported& event, const Worker& worker) const;
  void NoteBegin(uint64_t commit);
  void NoteCheckpoints(const Checkpoints& told, absl::Time now);

  // membership_worlds.cc
  void FormWorldWhenAllAsked();
  void FormWorld(const std::vector<Worker*>& members, bool sync_state);
  bool DeferOrRelease(Worker* worker, const JoinRequested& event);
  void ReleaseLeaversWithoutWorld(absl::Time now);
  void ReportUnfailedEnd(uint64_t commit);
  void FormElasticWorld(absl::Time now);
  std::optional<std::vector<Worker*>> ReadyForWorld(absl::Time now);
  void LeaveOutFinished(absl::Time now);
  void Release(Worker* worker, const std::string& reason, absl::Time now);
  void On(const LimitsChanged& event, absl::Time now);
  void ReleaseSurplus(absl::Time now);
  void ReleaseWhenNobodyStays(absl::Time now);

  // membership_change.cc: reconciliation of an elastic job with its desired state, after every
  // event
  void ReconcileInTime(absl::Time now);
  void Reconcile(absl::Time now);
  void CheckElasticDeadlines(absl::Time now);
  absl::Time NextElasticDeadline();
  void ReportWaiting();
  void EvictLateSurvivors(absl::Time now);
  void Evict(Worker* worker, const std::string& news, const std::string& meaning, absl::Time now);
  void StopOverdueLeavers(absl::Time now);
  void StopNow(Worker* worker, absl::Duration with_grace);
  void SignalChange(absl::Time now);

  // membership_slots.cc: starts of workers
  absl::Time NextFreeSlot() const;
  void StartWorkers(absl::Time now);

  // membership_commits.cc: commits in the memory of agents, and copies on other hosts
  void On(const CommitLeft& event, absl::Time now);
  void On(const CommitKept& event, absl::Time now);
  void NoteUncopied(Host* host, const std::string& failure);
  void SteerCopies();
  void TellToKeep(Host* host, const Host* holder);

  // membership_failures.cc: failures of workers and worlds, and the failure budget
  void On(const WorkerDying& event, absl::Time now);
  void FailSoon(Worker* worker, absl::Time now);
  void ResetFailing(Worker* worker, Move why);
  void EndElasticWorker(Worker* worker, const WorkerExited& exited, absl::Time now);
  void Fail(Worker* worker, Verdict as_verdict, absl::Time now);
  void CountFailure(absl::Time now);
  std::string Complaint(const Worker& worker) const;
  bool IsUserBug(const Worker& worker);
  void GiveUp(const std::string& why, absl::Time now);
  bool ElasticJobMayGoOn(uint64_t commit, absl::Time now);
  bool MayGoOnAfterFailure(uint64_t commit, bool idle, absl::Time now);
  bool MayGoOnAfterLostPeers(absl::Time now);
  bool ResetLimitIsReached(absl::Time now);
  bool StaticJobMayGoOn(uint64_t commit, absl::Time now);
  bool RestsAfterIdle(int in_a_row, absl::Time now);
  void SucceedWhenDone(absl::Time now);

  // membership_stalls.cc
  void On(const StallReported& event, absl::Time now);
  void On(const WorkerSampled& event, absl::Time now);
  absl::Time NextStallDeadline() const;
  void ReportStalls(absl::Time now);
  void ReportStall(const Stall& stall, absl::Time now);
  std::string Explain(const Stall& stall) const;
  std::string Describe(int rank, const Stall& stall) const;
  void EvictStalled(const Stall& stall, absl::Time now);
  void FailForStall(const Stall& stall, absl::Time now);

  // membership_ending.cc
  void On(const WorkerExited& event, absl::Time now);
  void On(const StopRequested& event, absl::Time now);
  void NoteEnding(const std::string& reason, const std::string& how);
  void EndAtCommit(const StopRequested& event, absl::Time now);
  void StopStarting(uint64_t kept, absl::Time now);
  void EndWhenAllHaveLeft(absl::Time now);
  void On(const Tick& event, absl::Time now);
  void CheckDeadlines(absl::Time now);
  void CompleteVerdict(const Worker& worker, const WorkerExited& exited);
  void EndCallsOf(Worker* worker, const absl::Status& status);
  void DecideOutcome(const std::string& news, absl::Time now);
  void FailIfNoWorldCanForm(absl::Time now);
  void Conclude(Verdict final_verdict, absl::Duration with_grace, absl::Time now,
                bool keeps_world = false);
  void AnswerAllParked();
  void AnswerWatches();
  absl::Status OverError() const;
  void StopLiveWorkers();
  void EndHost(Incarnation agent, const std::string& host, absl::Duration with_grace);
  void FinishHost(Host* host);
  void FinishWhenAllGone();
  void FinishIfAllGone();
  void FinishAnyway();

  // membership_view.cc
  std::string Check() const;
  std::string Explain() const;
  View Describe() const;
  WorkerView ViewOf(const Worker& worker) const;
  std::vector<AttachedHost> Attached() const;
  std::string ExplainElastic() const;
  std::string MissingCommitText(const Host& holder) const;
  std::string ExplainNeed(int asked, int starting) const;
  std::string UsableSlots() const;
  std::string RestingText() const;
  Wait WaitsFor() const;
  absl::Time WaitsUntil(Wait wait) const;
  std::string Condition(const Host& host, const std::set<std::pair<int, int>>& taken) const;
  lifecycle::JobState StateNow() const;
  lifecycle::WorkerState StateOf(const Worker& worker) const;

  void Note(Notice::Kind kind, std::string text, const Worker* worker = nullptr,
            const Host* host = nullptr);
  bool elastic() const { return spec.elastic.has_value(); }
  // What the first world needs.
  int start_workers() const {
    if (spec.start_workers == 0) return spec.max_workers;
    return std::clamp(spec.start_workers - epochs.fewer_at_start, spec.min_workers,
                      spec.max_workers);
  }
  // What the next world needs.
  int least_workers() const {
    return epochs.current == Epoch(0) ? start_workers() : spec.min_workers;
  }
  // In a job that ends: see CommitPlaces::Unwritten.
  uint64_t UnwrittenCommit() const { return ending.has_value() ? commits.Unwritten() : 0; }
  std::string Name(const Worker& worker) const;
  const Host& HostOf(const Worker& worker) const { return hosts[worker.host]; }
  void Answer(CallId call, absl::Status status) {
    effects.push_back(ReplyStatus{call, std::move(status)});
  }

  policy::JobSpec spec;  // min_workers and max_workers follow the newest LimitsChanged
  const ReconcileThrottle throttle;
  absl::Time last_time;         // of the newest event
  std::vector<Effect> effects;  // of the event being applied

  Hosts hosts;
  Workers workers;
  Epochs epochs;
  const Standing standing{hosts, workers, epochs};
  const CommitPlaces commits{standing};

  bool started = false;
  absl::Duration start_patience;
  absl::Time start_deadline;  // while not started

  RootCause root_cause;
  absl::Time settle_deadline =
      absl::InfiniteFuture();  // finite while failures wait for their root cause
  absl::Time dying_deadline = absl::InfinitePast();  // of the wait for the exit of a dying worker
  std::optional<Verdict> verdict;
  absl::Duration grace;  // from SIGTERM to SIGKILL, of the latest StopWorkersEffect
  absl::Time finish_deadline =
      absl::InfiniteFuture();  // finite from the verdict until all have gone
  bool finished = false;       // JobFinished was sent

  // Elastic jobs only.
  absl::Time next_reconcile = absl::InfinitePast();  // the earliest time of the next Reconcile
  bool reconcile_due = false;                        // Reconcile was throttled and must run then
  policy::FailureCounter counted_failures;
  policy::SlotHealth health;
  Verdict last_failure;
  std::vector<std::pair<std::string, std::string>> early_exceptions;  // text, machine
  std::optional<Ending> ending;
};

}  // namespace hvd::rendezvous::membership

#endif  // RENDEZVOUS_MEMBERSHIP_TRANSITIONS_MEMBERSHIP_STATE_H_
