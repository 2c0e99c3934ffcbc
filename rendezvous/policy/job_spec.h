// What is asked for when a job is started.
#ifndef RENDEZVOUS_POLICY_JOB_SPEC_H_
#define RENDEZVOUS_POLICY_JOB_SPEC_H_

#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "rendezvous/placement/slot_plan.h"

namespace hvd::rendezvous::policy {

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
  int spares = 0;                                       // workers kept ready beyond max_workers
  absl::Duration elastic_timeout = absl::Minutes(10);   // for min_workers to be there again
  absl::Duration rejoin_timeout = absl::Minutes(1);     // for survivors to ask for the next world
  absl::Duration join_delay = absl::Milliseconds(200);  // for more newcomers, once one is ready
  absl::Duration drain_grace = absl::Seconds(30);
  FailureBudget budget;
  // So many failures, and no commit in between, end the job; 0: however many. So do as many worlds
  // in which no operation was completed.
  int failures_without_progress = 3;
  std::optional<int> reset_limit;    // worlds after the first
  std::optional<Cooldown> cooldown;  // empty: a slot rests when it alone spends the budget
};

// What is asked for. A static job has min_workers == max_workers and no `elastic`: the first
// failure ends it.
struct JobSpec {
  int min_workers = 1;
  int max_workers = 1;
  int start_workers = 0;  // for the first world; 0: max_workers
  std::optional<ElasticSpec> elastic;
  std::vector<placement::HostSlots>
      expected_hosts;  // ranks follow this order; empty: the order of coming
  absl::Duration start_timeout = absl::Seconds(30);  // for every expected host to attach
  // For agents, after Restarted; and theirs for a daemon. Zero: none comes back.
  absl::Duration reattach_timeout = absl::Seconds(30);
  absl::Duration settle_time =
      absl::Milliseconds(500);  // waits so long for a cause once a consequence is seen
  absl::Duration failure_grace = absl::Seconds(1);  // SIGTERM to SIGKILL after a failure
  bool encrypt_data = false;  // workers talk to each other under TLS; nothing is decided by it
};

}  // namespace hvd::rendezvous::policy

#endif  // RENDEZVOUS_POLICY_JOB_SPEC_H_
