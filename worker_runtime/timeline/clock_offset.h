// The offsets between the clocks of a world's ranks.
#ifndef WORKER_RUNTIME_TIMELINE_CLOCK_OFFSET_H_
#define WORKER_RUNTIME_TIMELINE_CLOCK_OFFSET_H_

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "collectives/communicator.h"
#include "worker_runtime/timeline/event.h"

namespace hvd::worker_runtime::timeline {

// Every rank calls it, as a collective. Rank 0 sends each other rank its time, several times; the
// fastest answer counts. If the backend's error is Unimplemented, the offset is 0 and the
// uncertainty infinite.
// Errors: all others of Communicator.
absl::StatusOr<ClockOffset> MeasureClockOffset(collectives::Communicator& communicator,
                                               Clock& clock,
                                               const collectives::CallOptions& options);

}  // namespace hvd::worker_runtime::timeline

#endif  // WORKER_RUNTIME_TIMELINE_CLOCK_OFFSET_H_
