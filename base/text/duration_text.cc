#include "base/text/duration_text.h"

namespace hvd::text {
namespace {

absl::Duration UnitFor(absl::Duration duration) {
  if (duration >= absl::Minutes(1)) return absl::Seconds(1);
  if (duration >= absl::Seconds(1)) return absl::Milliseconds(100);
  return duration >= absl::Milliseconds(1) ? absl::Milliseconds(1) : absl::Microseconds(1);
}

}  // namespace

std::string DurationText(absl::Duration duration) {
  const absl::Duration shown = absl::Trunc(duration, UnitFor(absl::AbsDuration(duration)));
  return shown == absl::ZeroDuration() ? "0s" : absl::FormatDuration(shown);
}

}  // namespace hvd::text
