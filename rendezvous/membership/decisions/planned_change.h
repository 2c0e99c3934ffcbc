// The planned change of an elastic job to its next world: whether it is wanted, and when.
#ifndef RENDEZVOUS_MEMBERSHIP_DECISIONS_PLANNED_CHANGE_H_
#define RENDEZVOUS_MEMBERSHIP_DECISIONS_PLANNED_CHANGE_H_

#include <string>

#include "absl/time/time.h"
#include "rendezvous/membership/standing.h"
#include "rendezvous/policy/job_spec.h"

namespace hvd::rendezvous::membership::decisions {

// Why a planned change to another world is wanted although this one is not broken; empty: no change
// is wanted. In this order: hosts leave or lost slots, there are more workers than the maximum,
// newcomers are ready. Newcomers that become ready at about the same time join together: the change
// waits up to join_delay for those that are still starting.
std::string WantedChange(const policy::JobSpec& spec, const Standing& standing, absl::Time now);

// The time after `now` at which WantedChange may have another answer although nothing happens: the
// end of a newcomer's join_delay, or of the wait for a replacement. InfiniteFuture: none.
absl::Time NextChange(const policy::JobSpec& spec, const Standing& standing, absl::Time now);

}  // namespace hvd::rendezvous::membership::decisions

#endif  // RENDEZVOUS_MEMBERSHIP_DECISIONS_PLANNED_CHANGE_H_
