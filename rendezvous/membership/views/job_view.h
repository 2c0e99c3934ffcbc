// The views of a job for GetStatus, metrics and schedulers.
#ifndef RENDEZVOUS_MEMBERSHIP_VIEWS_JOB_VIEW_H_
#define RENDEZVOUS_MEMBERSHIP_VIEWS_JOB_VIEW_H_

#include <vector>

#include "rendezvous/membership/membership.h"
#include "rendezvous/membership/parts.h"

namespace hvd::rendezvous::membership::views {

// See Membership.
Membership::View Describe(const Parts& parts);
std::vector<Membership::AttachedHost> Attached(const Parts& parts);

}  // namespace hvd::rendezvous::membership::views

#endif  // RENDEZVOUS_MEMBERSHIP_VIEWS_JOB_VIEW_H_
