// What the membership machine knows, and its transitions, one source file a theme. Included by
// membership*.cc only.
#ifndef RENDEZVOUS_MEMBERSHIP_MEMBERSHIP_STATE_H_
#define RENDEZVOUS_MEMBERSHIP_MEMBERSHIP_STATE_H_

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
#include "rendezvous/membership/events.h"
#include "rendezvous/membership/exchange_rounds.h"
#include "rendezvous/membership/membership.h"
#include "rendezvous/membership/parked_watches.h"
#include "rendezvous/membership/restart_budget.h"
#include "rendezvous/membership/root_cause.h"
#include "rendezvous/membership/slot_plan.h"
#include "rendezvous/membership/worker_lifecycle.h"
#include "rendezvous/membership/world_plan.h"

namespace hvd::rendezvous::membership {

// Invariants: a parked call is in exactly one of Worker::join, watches and rounds, and leaves it
// together with the effect that answers it.
// In a static job every world has all workers in it, so a worker that has gone means that no world
// can follow.
// Of what every worker causes, nothing looks at all workers or hosts each time: jobs are large.
struct Membership::State {
  using Life = WorkerLifecycle::Life;
  using Move = WorkerLifecycle::Move;

  // For workers on their way to their first world, once there are enough for it without them.
  static constexpr absl::Duration kFormPatience = absl::Seconds(10);

  struct Drain {
    absl::Time since;
    absl::Time deadline;
    std::string reason;
    bool by_discovery = false;  // taken back if the host is listed again
    bool overran = false;       // some of its workers had to be stopped

    template <typename Archive>
    void Keep(Archive& archive) {
      auto& [a, b, c, d, e] = *this;
      archive(a, b, c, d, e);
    }
  };

  struct Host {
    HostSlots slots;
    bool expected = false;
    bool discovered = false;  // it was in a list of HostsDiscovered
    std::optional<Incarnation>
        agent;           // of the attached agent; empty before it attaches and after it is lost
    bool ended = false;  // EndJob was sent
    std::optional<Drain> drain;
    std::optional<Incarnation> away;  // of the agent that may attach again after Restarted
    absl::Time away_until = absl::InfinitePast();  // stays until an agent attaches
    int live = 0;                                  // workers there that are not gone

    template <typename Archive>
    void Keep(Archive& archive) {
      auto& [a, b, c, d, e, f, g, h, i] = *this;
      archive(a, b, c, d, e, f, g, h, i);
    }
  };

  // Worker ids are never used twice, and `workers` is in their order. In a static job they are
  // ranks + 1.
  struct Worker {
    WorkerId id;
    Placement place;  // in its newest world; before its first one: as planned when it was started
    int slot = 0;     // on its host; two live workers never share one
    int64_t pid = 0;
    std::optional<Incarnation> incarnation;  // of the newest process that has spoken
    std::set<Incarnation> superseded;        // of the processes before it
    std::optional<JoinRequested> join;       // its parked call
    WorkerLifecycle life;
    Epoch last_world;       // the newest that it was in
    uint64_t commit = 0;    // the newest that it can restore, by its own word
    std::string exception;  // its own word on why it fails
    bool caused_by_peer = false;
    absl::Time may_train_until = absl::InfinitePast();  // its host was lost, or only cut off
    absl::Time ready_since;                             // of its parked call
    absl::Time stop_at = absl::InfiniteFuture();        // if it has not gone by then
    std::vector<std::string> stderr_tail;               // that it has left behind

    template <typename Archive>
    void Keep(Archive& archive) {
      auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = *this;
      archive(a, b, c, d, e, f, g);
      if (archive.layout() < 3) return KeepAsBefore(archive);
      archive(h, i, j, k, l, m, n, o, p);
    }

    // The rest, as layouts 1 and 2 have it.
    template <typename Archive>
    void KeepAsBefore(Archive& archive) {
      WorkerLifecycle::Flags flags;
      archive(flags.in_epoch, flags.gone, flags.failed, last_world, commit, flags.finished);
      archive(flags.dying, flags.stopped, flags.released, exception, caused_by_peer);
      archive(may_train_until, ready_since, stop_at, stderr_tail);
      archive.Since(2, flags.failing);
      life = WorkerLifecycle::FromFlags(flags);
    }
  };

  // Of the present epoch; to be told when the missing ranks' agents have said what they do.
  struct Stall {
    struct Sample {
      std::string doing;
      std::vector<std::string> stack;

      template <typename Archive>
      void Keep(Archive& archive) {
        auto& [a, b] = *this;
        archive(a, b);
      }
    };
    StallReported report;
    std::set<WorkerId> awaited;
    std::map<WorkerId, Sample> samples;
    absl::Time deadline;

    template <typename Archive>
    void Keep(Archive& archive) {
      auto& [a, b, c, d] = *this;
      archive(a, b, c, d);
    }
  };

  // What the newest world's members say of it when they ask for the next.
  struct Leaving {
    bool any = false;  // there was such a word
    bool worked = false;
    std::string cause;  // the first error for which one left by itself; empty: none did
    int rank = -1;      // of that one
    std::string host;
    uint64_t lost_steps = 0;  // the most
    absl::Duration lost_time;

    template <typename Archive>
    void Keep(Archive& archive) {
      auto& [a, b, c, d, e, f, g] = *this;
      archive(a, b, c, d, e, f, g);
    }
  };

  State(JobSpec job_spec, absl::Time now, const Looks& when_to_look);

  // membership_archive.cc: all but `spec` and `looks`, and `effects`, which is empty between events
  template <typename Archive>
  void Keep(Archive& archive);

  // membership_hosts.cc
  void On(const HostJoined& event, absl::Time now);
  void On(const HostLost& event, absl::Time now);
  void On(const WorkerStarted& event, absl::Time now);
  void StartWhenComplete();
  void LoseStartedHost(const Host& host, absl::string_view reason, absl::Time now);
  int AttachedSlots() const;
  std::vector<std::string> MissingHosts() const;
  // "hosts b, c to attach (1 of 3 attached)"
  std::string MissingText() const;

  // membership_hosts_elastic.cc
  void On(const HostsDiscovered& event, absl::Time now);
  void On(const HostDraining& event, absl::Time now);
  void On(const Restarted& event, absl::Time now);
  void TakeInHost(const HostJoined& event, absl::Time now);
  bool Reattach(const HostJoined& event);
  void StopStrangers(const Host& host, const HostJoined& event);
  void LoseAwayHosts(absl::Time now);
  void LoseAwayHost(Host* host, const std::string& reason, absl::Time now);
  void UndoDrain(Host* host);
  void StartDrain(Host* host, absl::Duration grace, const std::string& reason, bool by_discovery,
                  absl::Time now);
  void LoseElasticHost(Host* host, const std::string& reason, absl::Time now);
  void LeaveLate(Host* host, const std::string& why);
  void LeaveLate(const Worker* worker, const std::string& what);
  void EndDrainedHosts();
  void ForgetDepartedHosts();
  Host* FindHost(const std::string& name);
  Host& AddHost(const HostSlots& slots);
  void IndexHosts();

  // membership_cut_off.cc
  void LoseSightOf(Worker* worker, absl::Time now);
  void SeeAgain(const Host& host, absl::Time now);
  absl::Time OldWorldEnds() const;
  void TellOfCutOff(absl::Time now);

  // membership_calls.cc
  void On(const JoinRequested& event, absl::Time now);
  void On(const WatchRequested& event, absl::Time now);
  void On(const ExchangeRequested& event, absl::Time now);
  void On(const Reported& event, absl::Time now);
  void On(const CallCancelled& event, absl::Time now);
  absl::Status Admit(const WorkerKey& key, Worker* worker);
  absl::Status CheckSpeaker(const WorkerKey& key, const Worker* worker) const;
  void Supersede(Worker* worker, Incarnation newer);
  void Park(Worker* worker, const JoinRequested& event, absl::Time now);
  void FormWorldWhenAllAsked();
  void FormWorld(const std::vector<Worker*>& members, bool sync_state);
  WorldMember MemberOf(const Worker& worker) const;
  void BreakEpoch(const std::string& reason);
  void EndEpoch(const std::string& reason);
  absl::Status CheckMember(const WorkerKey& key, const Worker& worker, Epoch wanted) const;

  // membership_worlds.cc: an elastic job's next worlds
  bool DeferOrRelease(Worker* worker, const JoinRequested& event);
  bool ComingTogether() const;
  bool MayComeAgain(const Worker& worker) const;
  void FormElasticWorld(absl::Time now);
  std::optional<std::vector<Worker*>> ReadyForWorld(absl::Time now);
  std::vector<Candidate> ToCandidates(const std::vector<Worker*>& workers) const;
  bool MayGoOn(uint64_t commit, absl::Time now);
  void LeaveOutFinished(absl::Time now);
  void Release(Worker* worker, absl::Time now);
  void ReleaseWhenNobodyStays(absl::Time now);

  // membership_progress.cc: how far the job is, and worlds that get nowhere
  void On(const ProgressReported& event, absl::Time now);
  bool WasLast(const ProgressReported& event, const Worker& worker) const;
  void Leave(const Worker& worker, const JoinRequested& event);
  bool EndedIdle(uint64_t commit) const;
  Verdict IdleVerdict() const;
  bool RestsAfterIdle(int in_a_row, absl::Time now);
  std::string IdleText(int in_a_row) const;
  void CountLoss(uint64_t commit);

  // membership_change.cc: an elastic job is steered towards what is wanted after every event
  void ReconcileInTime(absl::Time now);
  void Reconcile(absl::Time now);
  void CheckElasticDeadlines(absl::Time now);
  absl::Time NextElasticDeadline() const;
  void TellOfWaiting();
  void EvictLateSurvivors(absl::Time now);
  void Evict(Worker* worker, const std::string& news, const std::string& meaning, absl::Time now);
  void StopOverdueLeavers(absl::Time now);
  void StopNow(Worker* worker, absl::Duration with_grace);
  void StartWorkers(absl::Time now);
  int MostOn(const Host& host) const;
  // Host index and slot of all workers that are not gone.
  std::set<std::pair<int, int>> TakenSlots() const;
  absl::Time NextFreeSlot() const;
  void SignalChange(absl::Time now);
  std::string WantedChange(absl::Time now) const;
  absl::Time NextChange() const;            // when WantedChange may answer otherwise
  bool IsLive(const Worker& worker) const;  // runs, and is meant to
  bool IsLeaving(const Worker& worker) const;
  bool IsSurvivor(const Worker& worker) const;  // of the newest world
  bool IsReadyNewcomer(const Worker& worker) const;
  bool SomeGoOn() const;  // members of the newest world, to the next
  bool IsFinishing() const;
  int HostIndex(const Host& host) const { return static_cast<int>(&host - hosts.data()); }

  // membership_failures.cc: how an elastic job takes its workers' ends
  void On(const WorkerDying& event, absl::Time now);
  void FailSoon(Worker* worker, absl::Time now);
  void ResetFailing(Worker* worker, Move why);
  bool SomeFail() const;
  void EndElasticWorker(Worker* worker, const WorkerExited& exited, absl::Time now);
  void Fail(Worker* worker, Verdict as_verdict, absl::Time now);
  void Spend(absl::Time now);
  std::string Complaint(const Worker& worker) const;
  bool IsUserBug(const Worker& worker);
  std::map<std::pair<int, int>, WorkerId> NewestInSlots() const;
  void SucceedWhenDone(absl::Time now);
  void GiveUp(const std::string& why, absl::Time now);

  // membership_stalls.cc
  void On(const StallReported& event, absl::Time now);
  void On(const WorkerSampled& event, absl::Time now);
  absl::Status CheckStall(const StallReported& event) const;
  absl::Time NextStallDeadline() const;
  void TellOfStalls(absl::Time now);
  void TellOf(const Stall& stall, absl::Time now);
  std::string Explain(const Stall& stall) const;
  std::string Describe(int rank, const Stall& stall) const;
  void EvictStalled(const Stall& stall, absl::Time now);
  void FailForStall(const Stall& stall, absl::Time now);

  // membership_ending.cc
  void On(const WorkerExited& event, absl::Time now);
  void On(const StopRequested& event, absl::Time now);
  void On(const Tick& event, absl::Time now);
  void CheckDeadlines(absl::Time now);
  void CompleteVerdict(const Worker& worker, const WorkerExited& exited);
  void EndCallsOf(Worker* worker, const absl::Status& status);
  void Judge(const std::string& news, absl::Time now);
  void FailIfNoWorldCanForm(absl::Time now);
  void Conclude(Verdict final_verdict, absl::Duration with_grace, absl::Time now);
  void AnswerAllParked();
  absl::Status OverError() const;
  void StopLiveWorkers();
  void EndHost(Incarnation agent, const std::string& host, absl::Duration with_grace);
  void FinishHost(Host* host);
  void FinishWhenAllGone();
  void FinishIfAllGone();
  void FinishAnyway();
  bool AllGone() const { return live == 0; }

  // membership_view.cc
  std::string Explain() const;
  View Describe() const;
  std::string ExplainElastic() const;
  std::vector<int> LateSurvivors() const;
  std::string ExplainNeed(int asked, int starting) const;
  std::string UsableSlots() const;
  Wait WaitsFor() const;
  absl::Time WaitsUntil(Wait wait) const;
  std::string Condition(const Host& host, const std::set<std::pair<int, int>>& taken) const;
  std::string StateName() const;
  std::string StateName(const Worker& worker) const;

  void Note(Notice::Kind kind, std::string text, const Worker* worker = nullptr,
            const Host* host = nullptr);
  bool elastic() const { return spec.elastic.has_value(); }
  int start_workers() const {
    return spec.start_workers > 0 ? spec.start_workers : spec.max_workers;
  }
  Worker* Find(WorkerId id);
  Worker& AddWorker(Worker worker);
  void End(Worker* worker, Move how);
  std::string Name(const Worker& worker) const;
  const Host& HostOf(const Worker& worker) const { return hosts[worker.place.host]; }
  // Ranks of the workers for which `condition` holds.
  template <typename Condition>
  std::vector<int> RanksWhere(Condition condition) const {
    std::vector<int> ranks;
    for (const Worker& worker : workers) {
      if (condition(worker)) ranks.push_back(worker.place.rank);
    }
    return ranks;
  }
  void Answer(CallId call, absl::Status status) {
    effects.push_back(ReplyStatus{call, std::move(status)});
  }

  const JobSpec spec;
  const Looks looks;
  absl::Time last_time;         // of the newest event
  std::vector<Effect> effects;  // of the event in hand

  std::vector<Host> hosts;  // expected ones in the spec's order, then others as they come
  std::map<std::string, int> host_places;  // index into `hosts` by name
  std::vector<Worker> workers;
  int live = 0;           // of them, that are not gone
  size_t first_late = 0;  // static jobs: a worker that may not have asked; all before it have
  bool started = false;
  absl::Duration start_patience;
  absl::Time start_deadline;  // while not started

  Epoch epoch;
  WorldPtr world = std::make_shared<const World>();  // of `epoch`
  std::optional<std::string> broken;                 // why the epoch can't go on
  ExchangeRounds rounds;                             // of `epoch`
  ParkedWatches watches;
  std::vector<Stall> stalls;
  Leaving left;
  absl::Time broken_at;                            // if it is
  uint64_t reported_commit = 0;                    // the newest that rank 0 has told of
  absl::Time committed_at = absl::InfinitePast();  // that one
  uint64_t lost_steps = 0;                         // by failures, so far
  absl::Duration lost_time;

  RootCause failures;
  bool some_away = false;  // hosts may be
  absl::Time settle_deadline =
      absl::InfiniteFuture();  // finite while a consequence waits for its cause
  absl::Time dying_deadline = absl::InfinitePast();  // for the exit of a dying worker
  std::optional<Verdict> verdict;
  absl::Duration grace;  // of the latest StopWorkers
  absl::Time finish_deadline =
      absl::InfiniteFuture();  // finite from the verdict until all have gone
  bool finished = false;       // JobFinished was sent

  // Elastic jobs only.
  absl::Time next_look = absl::InfinitePast();  // Reconcile is not called before
  bool look_due = false;                        // ... but must be then
  RestartBudget budget;
  SlotHealth health;
  std::map<std::string, int> listed;           // the newest HostsDiscovered
  std::map<std::string, absl::Time> unlisted;  // hosts that went off the list, and when
  uint64_t last_worker_id = 0;
  std::optional<std::string> changing;  // members were told that another world is wanted, and why
  // While the next world is awaited: since when, else InfiniteFuture.
  absl::Time together_since = absl::InfiniteFuture();
  absl::Time quorum_since = absl::InfiniteFuture();  // ... and there are enough for it
  bool told_waiting = false;                         // a notice said that there are too few
  absl::Time formed_at;                              // the newest world
  uint64_t formed_commit = 0;                        // the newest commit at that time
  uint64_t newest_commit = 0;                        // that ever was in a world
  bool failed_world = false;                         // a failure ended it
  bool lost_hosts = false;                           // hosts were lost since it formed
  int failed_starts = 0;                             // in a row, while there was no world
  int without_progress = 0;  // failed or idle worlds in a row that brought no commit
  absl::Time idle_until = absl::InfinitePast();  // the next does not form before
  Verdict last_failure;
  std::vector<std::pair<std::string, std::string>> early_exceptions;  // text, host
};

}  // namespace hvd::rendezvous::membership

#endif  // RENDEZVOUS_MEMBERSHIP_MEMBERSHIP_STATE_H_
