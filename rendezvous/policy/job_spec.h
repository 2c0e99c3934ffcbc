// The specification of a job: its size, its hosts, its timeouts and its failure budget.
#ifndef RENDEZVOUS_POLICY_JOB_SPEC_H_
#define RENDEZVOUS_POLICY_JOB_SPEC_H_

#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "rendezvous/placement/placement.h"

namespace hvd::rendezvous::policy {

// The budget of failures: no more than `failures` within any `window`.
struct FailureBudget {
  int failures = 20;
  absl::Duration window = absl::Minutes(10);
};

// The cooldown of a host's slots after a failure there: the shortest and the longest pause. The
// pause doubles with each failure and is forgotten after a quiet time.
struct Cooldown {
  absl::Duration shortest = absl::Seconds(1);
  absl::Duration longest = absl::Minutes(1);
};

// The additional fields of elastic jobs. Workers that fail are replaced, hosts may come and go.
struct ElasticSpec {
  int spares = 0;                                       // workers kept ready beyond max_workers
  absl::Duration elastic_timeout = absl::Minutes(10);   // for min_workers to be there again
  absl::Duration rejoin_timeout = absl::Minutes(1);     // for survivors to ask for the next world
  absl::Duration join_delay = absl::Milliseconds(200);  // for more newcomers, once one is ready
  absl::Duration drain_grace = absl::Seconds(30);
  FailureBudget budget;
  // The job ends after this many failures without a commit in between; 0: no limit. The same limit
  // holds for worlds in which no operation was completed.
  int failures_without_progress = 3;
  std::optional<int> reset_limit;    // worlds after the first
  std::optional<Cooldown> cooldown;  // empty: a slot rests when it alone spends the budget
};

// The specification. A static job has min_workers == max_workers and no `elastic`: the first
// failure ends it.
struct JobSpec {
  int min_workers = 1;
  int max_workers = 1;
  int start_workers = 0;  // for the first world; 0: max_workers
  std::optional<ElasticSpec> elastic;
  std::vector<placement::HostSlots>
      expected_hosts;  // ranks follow this order, machine by machine; empty: that of attaching
  // Of a static job: ranks follow the order of the hosts also where a machine's are not neighbours.
  bool keep_host_order = false;
  absl::Duration start_timeout = absl::Seconds(30);  // for every expected host to attach
  // The wait for agents after Restarted, and of agents for a daemon. Zero: none returns.
  absl::Duration reattach_timeout = absl::Seconds(30);
  absl::Duration settle_time =
      absl::Milliseconds(500);  // the wait for a cause once a consequence is seen
  absl::Duration failure_grace = absl::Seconds(1);  // SIGTERM to SIGKILL after a failure
  bool encrypt_data = false;  // workers talk to each other under TLS; no effect on decisions
};

}  // namespace hvd::rendezvous::policy

#endif  // RENDEZVOUS_POLICY_JOB_SPEC_H_
