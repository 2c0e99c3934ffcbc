// The transitions of the membership machine, one source file per theme. Included by membership*.cc
// only.
#ifndef RENDEZVOUS_MEMBERSHIP_TRANSITIONS_MEMBERSHIP_STATE_H_
#define RENDEZVOUS_MEMBERSHIP_TRANSITIONS_MEMBERSHIP_STATE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/ids.h"
#include "rendezvous/membership/events.h"
#include "rendezvous/membership/hosts.h"
#include "rendezvous/membership/membership.h"
#include "rendezvous/membership/parts.h"
#include "rendezvous/membership/workers.h"
#include "rendezvous/policy/job_spec.h"

namespace hvd::rendezvous::membership {

// What changes the parts. Handlers of per-worker events must not scan all workers or hosts: jobs
// are large.
struct Membership::State : Parts {
  using Life = lifecycle::WorkerLifecycle::Life;
  using Move = lifecycle::WorkerLifecycle::Move;

  State(policy::JobSpec job_spec, absl::Time now, const ReconcileThrottle& reconcile_throttle)
      : Parts(std::move(job_spec), now), throttle(reconcile_throttle) {}

  // membership_hosts.cc
  void On(const HostJoined& event, absl::Time now);
  void On(const HostLost& event, absl::Time now);
  void On(const WorkerStarted& event, absl::Time now);
  void StartWhenComplete();
  void LoseStartedHost(const Host& host, absl::string_view reason, absl::Time now);

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
  void ReportLostCommit(Host* host, const CommitsElsewhere& elsewhere);
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
  bool RestUnreachedHosts(uint64_t commit, absl::Time now);
  void LetRest(Host* host, const std::vector<std::string>& unreached, absl::Time now);
  void RememberWays(uint64_t commit);
  void EndRests(absl::Time now);

  // membership_calls.cc
  void On(const JoinRequested& event, absl::Time now);
  void On(const WatchRequested& event, absl::Time now);
  void On(const ExchangeRequested& event, absl::Time now);
  void On(const Reported& event, absl::Time now);
  void On(const ProgressReported& event, absl::Time now);
  void On(const CallCancelled& event, absl::Time now);
  absl::Status Admit(const WorkerKey& key, Worker* worker);
  void Supersede(Worker* worker, Incarnation newer);
  void Park(Worker* worker, const JoinRequested& event, absl::Time now);
  void Leave(const Worker& worker, const JoinRequested& event);
  void BreakEpoch(const std::string& reason);
  void NoteBegin(uint64_t commit);
  void NoteCheckpoints(const Checkpoints& told, absl::Time now);

  // membership_worlds.cc
  void FormWorldWhenAllAsked();
  void FormWorld(const std::vector<Worker*>& members, bool sync_state);
  void FormElasticWorld(absl::Time now);
  std::optional<std::vector<Worker*>> ChooseMembers(absl::Time now);
  std::vector<Worker*> PlaceInRanks(const std::vector<Worker*>& candidates);
  void ReportUnfailedEnd(uint64_t commit);
  void LeaveOutFinished(absl::Time now);
  void On(const LimitsChanged& event, absl::Time now);

  // membership_releases.cc
  bool DeferOrRelease(Worker* worker, const JoinRequested& event);
  void Release(Worker* worker, const std::string& reason, absl::Time now);
  void ReleaseLeaversWithoutWorld(absl::Time now);
  void ReleaseLeaversLeftOut(absl::Time now);
  void ReleaseLeaversWhenTooFewStay(absl::Time now);
  void ReleaseWhenNobodyStays(absl::Time now);
  void ReleaseSurplus(absl::Time now);

  // membership_change.cc: reconciliation of an elastic job with its desired state, after every
  // event
  void ReconcileInTime(absl::Time now);
  void Reconcile(absl::Time now);
  void CheckElasticDeadlines(absl::Time now);
  absl::Time NextElasticDeadline();
  void ReportWaiting();
  std::vector<int> LateRanks() const;
  void EvictLateSurvivors(absl::Time now);
  void Evict(Worker* worker, const std::string& news, const std::string& meaning, absl::Time now);
  void StopOverdueLeavers(absl::Time now);
  void StopNow(Worker* worker, absl::Duration with_grace);
  void SignalChange(absl::Time now);

  // membership_slots.cc: starts of workers
  absl::Time NextFreeSlot() const;
  void StartWorkers(absl::Time now);
  void StartWriter(absl::Time now);
  void Start(const Worker& worker, int most_on_machine);

  // membership_commits.cc: commits in the memory of agents, and copies on other hosts
  void On(const CommitLeft& event, absl::Time now);
  void On(const CommitKept& event, absl::Time now);
  void NoteUncopied(Host* host, const std::string& failure);
  void SteerCopies();
  void TellToKeep(Host* host, const Host* holder);

  // membership_failures.cc: failures of workers and worlds, and the failure budget
  void On(const WorkerDying& event, absl::Time now);
  void FailSoon(Worker* worker, absl::Time now);
  void EndAsReported(const std::string& why, absl::Time now);
  void ResetFailing(Worker* worker, Move why);
  void EndElasticWorker(Worker* worker, const WorkerExited& exited, absl::Time now);
  void Fail(Worker* worker, Verdict as_verdict, absl::Time now);
  void CountFailure(absl::Time now);
  void GiveUp(const std::string& why, absl::Time now);
  bool ElasticJobMayGoOn(uint64_t commit, absl::Time now);
  bool StaticJobMayGoOn(uint64_t commit, absl::Time now);
  void SucceedWhenDone(absl::Time now);

  // membership_stalls.cc
  void On(const StallReported& event, absl::Time now);
  void On(const WorkerSampled& event, absl::Time now);
  void ReportStalls(absl::Time now);
  void ReportStall(const Stall& stall, absl::Time now);
  void EvictStalled(const Stall& stall, absl::Time now);

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
  void StopLiveWorkers();
  void EndHost(Incarnation agent, const std::string& host, absl::Duration with_grace);
  void FinishHost(Host* host);
  void FinishWhenAllGone();
  void FinishIfAllGone();
  void FinishAnyway();

  void Note(Notice::Kind kind, std::string text, const Worker* worker = nullptr,
            const Host* host = nullptr);
  void Answer(CallId call, absl::Status status) {
    effects.push_back(ReplyStatus{call, std::move(status)});
  }

  const ReconcileThrottle throttle;
  std::vector<Effect> effects;  // of the event being applied; empty between events
};

}  // namespace hvd::rendezvous::membership

#endif  // RENDEZVOUS_MEMBERSHIP_TRANSITIONS_MEMBERSHIP_STATE_H_
