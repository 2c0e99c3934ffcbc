// The latency between the cores of a group's ranks.
#ifndef COLLECTIVES_SHM_CORE_DISTANCE_H_
#define COLLECTIVES_SHM_CORE_DISTANCE_H_

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "collectives/shm/shm_links.h"

namespace hvd::collectives::shm {

// Measures the minimum round-trip time of a cache line between this rank's core and that of its
// partner in the pair of ranks 2k and 2k+1; zero for a rank without a partner. Every rank must call
// it. Takes some microseconds once all have called it.
// Errors: those of ShmLinks::Await.
absl::StatusOr<absl::Duration> MeasureRoundTrip(ShmLinks& links, absl::Duration timeout);

// Whether `round_trip` is typical of cores without a shared cache. It is below 0.2 us for cores
// with a shared cache, and above 2 us for ranks that take turns on one core, and so share its
// caches.
bool AreFarApart(absl::Duration round_trip);

}  // namespace hvd::collectives::shm

#endif  // COLLECTIVES_SHM_CORE_DISTANCE_H_
