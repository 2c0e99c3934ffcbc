// The groups of a static job's workers for torch.distributed.
#ifndef RENDEZVOUS_MEMBERSHIP_DECISIONS_TORCH_GROUPS_H_
#define RENDEZVOUS_MEMBERSHIP_DECISIONS_TORCH_GROUPS_H_

#include "rendezvous/membership/events.h"
#include "rendezvous/membership/hosts.h"
#include "rendezvous/membership/workers.h"

namespace hvd::rendezvous::membership::decisions {

// The worker's group, which is its machine. The group's number is the cross rank of the worker with
// local rank 0 there. REQUIRES: a static job, all of whose workers up to this one are there.
TorchGroup TorchGroupOf(const Worker& worker, const Hosts& hosts, const Workers& workers);

}  // namespace hvd::rendezvous::membership::decisions

#endif  // RENDEZVOUS_MEMBERSHIP_DECISIONS_TORCH_GROUPS_H_
