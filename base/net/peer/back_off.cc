#include "base/net/peer/back_off.h"

#include <algorithm>

#include "absl/random/uniform_real_distribution.h"

namespace hvd::net::peer {

// Equal jitter: half of the range is fixed, the other half random.
absl::Duration BackOff::Next(absl::BitGenRef random) {
  const absl::Duration range = range_;
  range_ = std::min(range_ * 2, longest_);
  return range * absl::uniform_real_distribution<double>(0.5, 1.0)(random);
}

}  // namespace hvd::net::peer
