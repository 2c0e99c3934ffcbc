// The membership state machine: decides which workers are in the job, with which ranks, and how the
// job ends. Pure: no thread, lock, socket, clock, environment or logger; the same events at the
// same times give the same effects.
#ifndef RENDEZVOUS_MEMBERSHIP_MEMBERSHIP_H_
#define RENDEZVOUS_MEMBERSHIP_MEMBERSHIP_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rendezvous/lifecycle/states.h"
#include "rendezvous/membership/events.h"
#include "rendezvous/policy/job_spec.h"

namespace hvd::pb::journal {
class MembershipState;
}

namespace hvd::rendezvous::membership {

// States: forming (hosts attach, workers start, nobody has a world yet) -> running -> done |
// failed. While the next world is awaited, a static job is forming again, and an elastic job is
// resetting; see lifecycle/states.h.
//
// In an elastic job a failure breaks the epoch, and the next world forms as soon as all survivors
// have asked for it, with the newcomers that are ready. Newcomers join, and leaving workers go, by
// a planned change: members are notified that the epoch is changing, and ask for the next world at
// their next commit.
//
// Not thread-safe: one owner calls it.
class Membership {
 public:
  // The throttle of Reconcile in a large elastic job. From `many_workers` on, it runs at most once
  // per `pause` × workers, for all events of that time.
  struct ReconcileThrottle {
    int64_t many_workers = 500;
    absl::Duration pause = absl::Nanoseconds(200);
  };

  explicit Membership(policy::JobSpec spec, absl::Time now)
      : Membership(std::move(spec), now, ReconcileThrottle()) {}
  Membership(policy::JobSpec spec, absl::Time now, const ReconcileThrottle& throttle);
  ~Membership();

  // Applies one event and returns the effects to carry out, in order. Answers each call at most
  // once.
  std::vector<Effect> Apply(const Event& event, absl::Time now);

  // The time at which Tick must be applied, unless another event comes first; InfiniteFuture if
  // time alone changes nothing.
  absl::Time NextDeadline() const;

  // The newest world; epoch 0 and empty before the first.
  WorldPtr world() const;

  // What the job waits for, or its verdict, in one line.
  std::string Explain() const;

  // The state of the job, for GetStatus and the metrics.
  struct WorkerView {
    WorkerId id;
    int rank = -1;
    int64_t pid = 0;
    lifecycle::WorkerState state = lifecycle::WorkerState::kStarting;
    bool is_of_newest_world = true;  // false: it left before that, or was in none
  };
  struct HostView {
    HostSlots host;
    bool attached = false;
    std::string condition;                          // "", "draining", "2 slots rest after failures"
    absl::Time leaves_at = absl::InfiniteFuture();  // the deadline of its drain
    std::vector<WorkerView> workers;
    bool awaited = false;  // its agent, after a restart of the daemon
  };
  // What the job needs to go on: hosts to attach, workers to get ready, members to ask for the next
  // world, or workers to call hvd.init(). `explanation` names them.
  enum class Wait { kNothing, kHosts, kWorkers, kMembers, kInit };
  struct View {
    bool elastic = false;
    Epoch epoch;
    lifecycle::JobState state = lifecycle::JobState::kForming;
    std::string explanation;
    std::vector<HostView> hosts;
    int min_workers = 0;
    int max_workers = 0;
    int size = 0;           // of the newest world
    int failures = 0;       // so far
    int failures_left = 0;  // that the budget still allows; 0 in a static job
    uint64_t commit = 0;    // the newest known commit; 0: none
    absl::Time committed_at = absl::InfinitePast();  // time of that commit; InfinitePast: unknown
    double commit_rate = 0;   // commits per second of the newest world, on average; 0: unknown
    bool some_train = false;  // some rank has work that it could commit
    uint64_t lost_steps = 0;  // by failures, so far
    absl::Duration lost_time = absl::ZeroDuration();
    uint64_t checkpoint = 0;      // the commit of the newest checkpoint; 0: none is known
    uint64_t unsaved_commit = 0;  // the newest commit, if it is newer than that; else 0
    absl::Time checkpoint_at = absl::InfinitePast();  // time of that commit; InfinitePast: unknown
    std::string checkpoint_place;    // its path or URL, or the folder's; empty: none are written
    std::string checkpoint_failure;  // why the last one could not be written; empty: it was
    bool has_begun = false;          // training, in the newest world
    Wait waits_for = Wait::kNothing;
    // The deadline of the wait: then the job fails, or the awaited member is evicted.
    // InfiniteFuture: none.
    absl::Time waits_until = absl::InfiniteFuture();
  };
  View Describe() const;

  // The hosts whose agents are attached, or awaited after Restarted, with their live workers. For a
  // restarted scheduler that starts workers itself, in place of agents.
  struct AttachedHost {
    HostSlots host;
    Incarnation agent;
    std::vector<WorkerView> workers;
  };
  std::vector<AttachedHost> Attached() const;

  // Returns the first violated invariant, or an empty string if all hold. For Load, the simulation
  // and tests; takes time linear in the size of the job.
  std::string Check() const;

  // The verdict; nullopt before JobFinished.
  std::optional<Verdict> Ended() const;

  // Serializes the complete state.
  pb::journal::MembershipState Save() const;
  // Restores a machine from Save's result; it behaves as the saved one would have. REQUIRES: the
  // same spec and throttle.
  // Errors:
  //   - DataLoss: `saved` is not a result of Save, or violates an invariant of Check.
  static absl::StatusOr<std::unique_ptr<Membership>> Load(
      policy::JobSpec spec, const pb::journal::MembershipState& saved) {
    return Load(std::move(spec), saved, ReconcileThrottle());
  }
  static absl::StatusOr<std::unique_ptr<Membership>> Load(policy::JobSpec spec,
                                                          const pb::journal::MembershipState& saved,
                                                          const ReconcileThrottle& throttle);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hvd::rendezvous::membership

#endif  // RENDEZVOUS_MEMBERSHIP_MEMBERSHIP_H_
