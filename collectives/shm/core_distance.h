// The distance between the cores of a group's ranks.
#ifndef COLLECTIVES_SHM_CORE_DISTANCE_H_
#define COLLECTIVES_SHM_CORE_DISTANCE_H_

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "collectives/shm/shm_links.h"

namespace hvd::collectives::shm {

// The minimum round-trip time of a cache line to another rank's core, measured between pairs of
// neighbouring ranks; zero for a rank without a partner. Every rank must call it; takes some
// microseconds once they have.
// Errors: those of ShmLinks::Await.
absl::StatusOr<absl::Duration> MeasureRoundTrip(ShmLinks& links, absl::Time deadline);

// Whether this is the time of cores without a shared cache. (With one it is tenths of a
// microsecond. Much more means that the ranks share one core, and thus its caches.)
bool AreFarApart(absl::Duration round_trip);

}  // namespace hvd::collectives::shm

#endif  // COLLECTIVES_SHM_CORE_DISTANCE_H_
