// The texts about a stall, from its report and the samples of the missing ranks.
#ifndef RENDEZVOUS_MEMBERSHIP_VIEWS_STALL_TEXT_H_
#define RENDEZVOUS_MEMBERSHIP_VIEWS_STALL_TEXT_H_

#include <string>
#include <vector>

#include "base/ids.h"
#include "rendezvous/membership/epochs.h"
#include "rendezvous/membership/events.h"

namespace hvd::rendezvous::membership::views {

// The ranks that the operations of the report wait for, ascending.
std::vector<int> MissingRanks(const StallReported& report);

// "Stalled for 1m in allreduce 'a' and 3 more, waiting for rank 1 on host b, which is at ..."
std::string StallText(const Stall& stall, const World& world);

// Why a missing rank's worker is evicted: "stalled: the others waited for 1m for it in ..."
std::string EvictionText(const Stall& stall, WorkerId worker);

// The verdict on a static job.
Verdict StallVerdict(const Stall& stall, const World& world);

}  // namespace hvd::rendezvous::membership::views

#endif  // RENDEZVOUS_MEMBERSHIP_VIEWS_STALL_TEXT_H_
