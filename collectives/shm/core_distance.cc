#include "collectives/shm/core_distance.h"

#include <algorithm>

#include "base/clock.h"
#include "base/status_macros.h"

namespace hvd::collectives::shm {
namespace {

// The minimum of several measurements, each of several round trips, since reading the clock takes
// about as long as one round trip.
constexpr int kTries = 4, kRoundTrips = 8;
constexpr absl::Duration kFar = absl::Nanoseconds(200), kSharedCore = absl::Microseconds(2);

}  // namespace

// Ping-pong between the two ranks of a pair: the lower rank increments its probe, the higher one
// waits for that and increments its own, for which the lower one waits. The counters go on from
// earlier measurements, which both ranks have completed equally often.
absl::StatusOr<absl::Duration> MeasureRoundTrip(ShmLinks& links, absl::Duration timeout) {
  const int partner = links.rank() ^ 1;
  if (partner >= links.size()) return absl::ZeroDuration();
  const bool goes_first = links.rank() < partner;
  std::atomic<uint64_t>& own = links.own_state().probe;
  const std::atomic<uint64_t>& other = links.segment().state(partner).probe;
  absl::Duration best = absl::InfiniteDuration();
  for (int i = 0; i < kTries; ++i) {
    const absl::Time start = Clock::Real().Now();
    for (int trip = 0; trip < kRoundTrips; ++trip) {
      const uint64_t number = own.load(std::memory_order_relaxed) + 1;
      if (goes_first) own.store(number, std::memory_order_release);
      links.Notify(partner);
      RETURN_IF_ERROR(links.Await(
          [&] { return other.load(std::memory_order_acquire) >= number ? -1 : partner; }, timeout));
      if (!goes_first) own.store(number, std::memory_order_release);
    }
    links.Notify(partner);
    best = std::min(best, (Clock::Real().Now() - start) / kRoundTrips);
  }
  return best;
}

bool AreFarApart(absl::Duration round_trip) {
  return round_trip > kFar && round_trip < kSharedCore;
}

}  // namespace hvd::collectives::shm
