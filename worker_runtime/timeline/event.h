// The events of a timeline.
#ifndef WORKER_RUNTIME_TIMELINE_EVENT_H_
#define WORKER_RUNTIME_TIMELINE_EVENT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "worker_runtime/negotiation/tensor_signature.h"

namespace hvd::worker_runtime::timeline {

// The numbers are part of the format (proto/timeline.proto).
enum class EventKind : int32_t {
  kQueued = 0,     // a tensor was submitted
  kPlanned = 1,    // all ranks have submitted it, and its turn has come
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
  uint64_t id = 0;                                 // queued, planned: pairs the two
  std::string activity;                            // its name
  std::vector<negotiation::SignaturePtr> tensors;  // all but activity and cycle
};

// The difference of a rank's clock to rank 0's.
struct ClockOffset {
  absl::Duration offset;                                  // to be added
  absl::Duration uncertainty = absl::InfiniteDuration();  // the bound of the offset's error
};

}  // namespace hvd::worker_runtime::timeline

#endif  // WORKER_RUNTIME_TIMELINE_EVENT_H_
