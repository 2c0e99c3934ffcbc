// How far the cores of a group's ranks are from one another.
#ifndef COLLECTIVES_SHM_CORE_DISTANCE_H_
#define COLLECTIVES_SHM_CORE_DISTANCE_H_

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "collectives/shm/shm_links.h"

namespace hvd::collectives::shm {

// The time that a cache line takes to another rank's core and back, at best; between neighbouring
// ranks, zero for one that has none. Every rank must call it; takes some microseconds once they
// have.   Errors as ShmLinks::Await.
absl::StatusOr<absl::Duration> MeasureRoundTrip(ShmLinks& links, absl::Time deadline);

// Whether such a time is that of cores which share no cache. (Tenths of a microsecond where they
// do. Much more means that the ranks share one core, and thus its caches.)
bool AreFarApart(absl::Duration round_trip);

}  // namespace hvd::collectives::shm

#endif  // COLLECTIVES_SHM_CORE_DISTANCE_H_
