// The events that a timeline records.
#ifndef WORKER_RUNTIME_TIMELINE_EVENT_H_
#define WORKER_RUNTIME_TIMELINE_EVENT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "worker_runtime/negotiation/tensor_signature.h"

namespace hvd::worker_runtime::timeline {

// The kinds of events. Their numbers are part of the format (proto/timeline.proto).
enum class EventKind : int32_t {
  kQueued = 0,     // a tensor was submitted
  kPlanned = 1,    // all ranks have submitted the tensor, and a plan runs it
  kOperation = 2,  // one batch of a plan
  kActivity = 3,   // a part of an operation
  kCycle = 4,      // a round of the engine's loop
};
inline constexpr int kEventKindCount = 5;

struct TimelineEvent {
  EventKind kind = EventKind::kQueued;
  int process_set = 0;
  absl::Time begin;
  absl::Duration duration;                         // operation, activity
  uint64_t id = 0;                                 // the same in the two events of a tensor
  std::string activity;                            // its name
  std::vector<negotiation::SignaturePtr> tensors;  // all but activity and cycle
};

// The offset between the clocks of a rank and of rank 0.
struct ClockOffset {
  absl::Duration offset;                                  // rank 0's time minus this rank's
  absl::Duration uncertainty = absl::InfiniteDuration();  // the largest error of the offset
};

}  // namespace hvd::worker_runtime::timeline

#endif  // WORKER_RUNTIME_TIMELINE_EVENT_H_
