// What a timeline is made of.
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
  kOperation = 2,  // what one plan's batch took
  kActivity = 3,   // a part of an operation
  kCycle = 4,      // the engine looks what there is to do
};
inline constexpr int kEventKindCount = 5;

struct TimelineEvent {
  EventKind kind = EventKind::kQueued;
  int process_set = 0;
  absl::Time begin;
  absl::Duration duration;                         // operation, activity
  uint64_t id = 0;                                 // queued, planned: which two belong together
  std::string activity;                            // its name
  std::vector<negotiation::SignaturePtr> tensors;  // all but activity and cycle
};

// How far a rank's clock is behind rank 0's.
struct ClockOffset {
  absl::Duration offset;                                  // to be added
  absl::Duration uncertainty = absl::InfiniteDuration();  // the offset is right but for so much
};

}  // namespace hvd::worker_runtime::timeline

#endif  // WORKER_RUNTIME_TIMELINE_EVENT_H_
