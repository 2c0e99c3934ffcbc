// The specification of a job: its size, its hosts, its timeouts and its failure budget.
#ifndef RENDEZVOUS_POLICY_JOB_SPEC_H_
#define RENDEZVOUS_POLICY_JOB_SPEC_H_

#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "base/settings/on_corruption.h"
#include "rendezvous/placement/placement.h"

namespace hvd::rendezvous::policy {

// A failure budget: at most `failures` failures within any period of length `window`.
struct FailureBudget {
  int failures = 20;
  absl::Duration window = absl::Minutes(10);
};

// The cooldown of a slot after a failure there. The pause doubles with each failure, from
// `shortest` to `longest`, and is reset after SlotHealth::kQuietTime without a failure.
struct Cooldown {
  absl::Duration shortest = absl::Seconds(1);
  absl::Duration longest = absl::Minutes(1);
};

// The additional fields of elastic jobs. Workers that fail are replaced, hosts may come and go.
struct ElasticSpec {
  int spares = 0;                                       // workers kept ready beyond max_workers
  absl::Duration elastic_timeout = absl::Minutes(10);   // for min_workers to be ready again
  absl::Duration rejoin_timeout = absl::Minutes(1);     // for survivors to ask for the next world
  absl::Duration join_delay = absl::Milliseconds(200);  // for further newcomers, once one is ready
  absl::Duration drain_grace = absl::Seconds(30);
  FailureBudget budget;
  // The job ends after this many failures in a row without a commit in between; 0: no limit. The
  // limit also applies to worlds in a row in which no operation was completed.
  int failures_without_progress = 3;
  std::optional<int> reset_limit;  // the maximum number of worlds after the first; empty: no limit
  settings::OnCorruption on_corruption =
      settings::OnCorruption::kWarn;  // the workers act; the membership ignores this
  std::optional<Cooldown> cooldown;   // empty: defaults, and only for slots with repeated failures
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
  // Static jobs: ranks follow the order of the hosts, even where the hosts of a machine are not
  // adjacent.
  bool keep_host_order = false;
  absl::Duration start_timeout = absl::Seconds(30);  // for every expected host to attach
  // How long a restarted daemon waits for its agents, and agents for a daemon. Zero: no
  // reattaching.
  absl::Duration reattach_timeout = absl::Seconds(30);
  absl::Duration settle_time =
      absl::Milliseconds(500);  // the wait for a cause once a consequence is seen
  absl::Duration failure_grace = absl::Seconds(1);  // SIGTERM to SIGKILL after a failure
  bool encrypt_data = false;  // connections between workers use TLS; the membership ignores this
};

}  // namespace hvd::rendezvous::policy

#endif  // RENDEZVOUS_POLICY_JOB_SPEC_H_
