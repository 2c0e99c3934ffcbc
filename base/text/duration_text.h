// Human-readable durations.
#ifndef BASE_TEXT_DURATION_TEXT_H_
#define BASE_TEXT_DURATION_TEXT_H_

#include <string>

#include "absl/time/time.h"

namespace hvd::text {

// Cut off rather than rounded, at seconds, tenths of a second, milliseconds or microseconds,
// depending on the size: "2m5s", "4.1s", "830ms". Pure.
std::string DurationText(absl::Duration duration);

}  // namespace hvd::text

#endif  // BASE_TEXT_DURATION_TEXT_H_
