// The human-readable form of durations.
#ifndef BASE_TEXT_DURATION_TEXT_H_
#define BASE_TEXT_DURATION_TEXT_H_

#include <string>

#include "absl/time/time.h"

namespace hvd::text {

// Returns "2m5s", "4.1s" or "830ms": truncated to seconds, tenths of a second, milliseconds or
// microseconds, depending on the size. Pure.
std::string DurationText(absl::Duration duration);

}  // namespace hvd::text

#endif  // BASE_TEXT_DURATION_TEXT_H_
