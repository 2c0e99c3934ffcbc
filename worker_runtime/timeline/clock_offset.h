// The measurement of the offset between a rank's clock and that of rank 0.
#ifndef WORKER_RUNTIME_TIMELINE_CLOCK_OFFSET_H_
#define WORKER_RUNTIME_TIMELINE_CLOCK_OFFSET_H_

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "collectives/communicator.h"
#include "worker_runtime/timeline/event.h"

namespace hvd::worker_runtime::timeline {

// A collective: every rank must call it. As in Cristian's algorithm, each rank asks rank 0 for its
// time several times and uses the fastest answer. If the communicator can't do this
// (Unimplemented), the offset is 0 and its uncertainty infinite.
// Errors: those of Communicator, except Unimplemented.
absl::StatusOr<ClockOffset> MeasureClockOffset(collectives::Communicator& communicator,
                                               Clock& clock,
                                               const collectives::CallOptions& options);

}  // namespace hvd::worker_runtime::timeline

#endif  // WORKER_RUNTIME_TIMELINE_CLOCK_OFFSET_H_
