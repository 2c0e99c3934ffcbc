// The membership machine: decides who is in the job, with which rank, and how the job ends. Pure:
// no thread, lock, socket, clock, environment or logger; the same events at the same times give the
// same effects.
#ifndef RENDEZVOUS_MEMBERSHIP_MEMBERSHIP_H_
#define RENDEZVOUS_MEMBERSHIP_MEMBERSHIP_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "rendezvous/membership/events.h"

namespace hvd {

// How many failures are forgiven: no more than `failures` within any `window`.
struct FailureBudget {
  int failures = 20;
  absl::Duration window = absl::Minutes(10);
};

// How long a host's slots are left alone after a failure there: the shortest and the longest pause;
// it doubles with each failure and is forgotten after a quiet time.
struct Cooldown {
  absl::Duration shortest = absl::Seconds(1);
  absl::Duration longest = absl::Minutes(1);
};

// What elastic jobs have beside. Workers that fail are replaced, hosts may come and go.
struct ElasticSpec {
  int spares = 0;                      // workers kept ready beyond max_workers
  absl::Duration elastic_timeout = absl::Minutes(10);  // for min_workers to be there again
  absl::Duration rejoin_timeout = absl::Minutes(1);    // for survivors to ask for the next world
  absl::Duration join_delay = absl::Milliseconds(200);  // for more newcomers, once one is ready
  absl::Duration drain_grace = absl::Seconds(30);
  absl::Duration reattach_timeout = absl::Seconds(30);  // for agents, after Restarted
  FailureBudget budget;
  int failures_without_progress = 3;   // so many failures, and no commit in between, end the job
  std::optional<int> reset_limit;      // worlds after the first
  std::optional<Cooldown> cooldown;    // empty: one failure is free, then Cooldown's defaults
};

// What is asked for. A static job has min_workers == max_workers and no `elastic`: the first failure
// ends it.
struct JobSpec {
  int min_workers = 1;
  int max_workers = 1;
  int start_workers = 0;               // for the first world; 0: max_workers
  std::optional<ElasticSpec> elastic;
  std::vector<HostSlots> expected_hosts;  // ranks follow this order; empty: the order of coming
  absl::Duration start_timeout = absl::Seconds(30);  // for every expected host to attach
  absl::Duration settle_time =
      absl::Milliseconds(500);  // waits so long for a cause once a consequence is seen
  absl::Duration failure_grace = absl::Seconds(1);  // SIGTERM to SIGKILL after a failure
};

// States: forming (hosts attach, workers start, nobody has a world yet) -> running -> done |
// failed; running -> forming when every member asks for the next world. Not thread-safe: one owner
// calls it.
class Membership {
 public:
  explicit Membership(JobSpec spec, absl::Time now);
  ~Membership();

  // Takes one event and returns what must be done, in order. Never names a call twice.
  std::vector<Effect> Apply(const Event& event, absl::Time now);

  // When Tick must be applied at the latest; InfiniteFuture if time alone changes nothing.
  absl::Time NextDeadline() const;

  // One line: what the job waits for, or its verdict.
  std::string Explain() const;

  // What GetStatus shows.
  struct WorkerView {
    WorkerId id;
    int rank = -1;
    int64_t pid = 0;
    std::string state;
  };
  struct HostView {
    HostSlots host;
    bool attached = false;
    std::vector<WorkerView> workers;
  };
  struct View {
    Epoch epoch;
    std::string state;
    std::string explanation;
    std::vector<HostView> hosts;
  };
  View Describe() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hvd

#endif  // RENDEZVOUS_MEMBERSHIP_MEMBERSHIP_H_
