// What the membership machine knows, and its transitions, one source file a theme. Included by
// membership*.cc only.
#ifndef RENDEZVOUS_MEMBERSHIP_MEMBERSHIP_STATE_H_
#define RENDEZVOUS_MEMBERSHIP_MEMBERSHIP_STATE_H_

#include <cstdint>
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
#include "rendezvous/membership/root_cause.h"
#include "rendezvous/membership/slot_plan.h"

namespace hvd {

// Invariants: a parked call is in exactly one of Worker::join, watches and rounds, and leaves it
// together with the effect that answers it. Every world has all workers in it, so a worker that has
// gone means that no world can follow.
struct Membership::State {
  struct Host {
    HostSlots slots;
    bool expected = false;
    std::optional<Incarnation>
        agent;           // of the attached agent; empty before it attaches and after it is lost
    bool ended = false;  // EndJob was sent
  };

  // Worker ids are ranks + 1 in a static job; `workers` is in rank order.
  struct Worker {
    WorkerId id;
    Placement place;
    int64_t pid = 0;
    std::optional<Incarnation> incarnation;  // of the newest process that has spoken
    std::set<Incarnation> superseded;        // of the processes before it
    std::optional<JoinRequested> join;       // its parked call
    bool in_epoch = false;  // in the current epoch, and has not said that it finished
    bool gone = false;      // it has exited or its host is lost
    bool failed = false;    // ... in failure
    std::vector<std::string> stderr_tail;  // ... having said this
  };

  State(JobSpec job_spec, absl::Time now);

  // membership_hosts.cc
  void On(const HostJoined& event, absl::Time now);
  void On(const HostLost& event, absl::Time now);
  void On(const HostsDiscovered& event, absl::Time now) {}
  void On(const HostDraining& event, absl::Time now) {}
  void On(const Restarted& event, absl::Time now) {}
  void On(const WorkerDying& event, absl::Time now) {}
  void On(const WorkerStarted& event, absl::Time now);
  void StartWhenComplete();
  void LoseStartedHost(const Host& host, absl::string_view reason, absl::Time now);
  int AttachedSlots() const;
  std::vector<std::string> MissingHosts() const;
  // "hosts b, c to attach (1 of 3 attached)"
  std::string MissingText() const;

  // membership_calls.cc
  void On(const JoinRequested& event, absl::Time now);
  void On(const WatchRequested& event, absl::Time now);
  void On(const ExchangeRequested& event, absl::Time now);
  void On(const Reported& event, absl::Time now);
  void On(const CallCancelled& event, absl::Time now);
  absl::Status Admit(const WorkerKey& key, Worker* worker);
  absl::Status CheckSpeaker(const WorkerKey& key, const Worker* worker) const;
  void Supersede(Worker* worker, Incarnation newer);
  void Park(Worker* worker, const JoinRequested& event);
  void FormWorldWhenAllAsked();
  void BreakEpoch(const std::string& reason);
  absl::Status CheckMember(const WorkerKey& key, const Worker& worker, Epoch wanted) const;

  // membership_ending.cc
  void On(const WorkerExited& event, absl::Time now);
  void On(const StopRequested& event, absl::Time now);
  void On(const Tick& event, absl::Time now);
  void CheckDeadlines(absl::Time now);
  void EndCallsOf(Worker* worker, const absl::Status& status);
  void Judge(const std::string& news, absl::Time now);
  void FailIfNoWorldCanForm(absl::Time now);
  void Conclude(Verdict final_verdict, absl::Duration with_grace, absl::Time now);
  void AnswerAllParked();
  absl::Status OverError() const;
  void StopLiveWorkers();
  bool HasLiveWorkers(const Host& host) const;
  void FinishWhenAllGone();
  void FinishAnyway();
  bool AllGone() const;

  // membership_view.cc
  std::string Explain() const;
  View Describe() const;
  std::string StateName() const;
  std::string StateName(const Worker& worker) const;

  Worker* Find(WorkerId id);
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
  std::vector<Effect> effects;  // of the event in hand

  std::vector<Host> hosts;  // expected ones in the spec's order, then others as they come
  std::vector<Worker> workers;
  bool started = false;
  absl::Time start_deadline;  // while not started

  Epoch epoch;
  World world;                        // of `epoch`
  std::optional<std::string> broken;  // why the epoch can't go on
  ExchangeRounds rounds;              // of `epoch`
  std::vector<WatchRequested> watches;

  RootCause failures;
  absl::Time settle_deadline =
      absl::InfiniteFuture();  // finite while a consequence waits for its cause
  std::optional<Verdict> verdict;
  absl::Duration grace;  // of the latest StopWorkers
  absl::Time finish_deadline =
      absl::InfiniteFuture();  // finite from the verdict until all have gone
  bool finished = false;       // JobFinished was sent
};

}  // namespace hvd

#endif  // RENDEZVOUS_MEMBERSHIP_MEMBERSHIP_STATE_H_
