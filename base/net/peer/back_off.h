// Exponential back-off with jitter between retries.
#ifndef BASE_NET_PEER_BACK_OFF_H_
#define BASE_NET_PEER_BACK_OFF_H_

#include "absl/random/bit_gen_ref.h"
#include "absl/time/time.h"

namespace hvd::net::peer {

// The range of a pause doubles from `shortest` to `longest`. Each pause is drawn from the upper
// half of its range, so that processes that lost the same peer at the same time do not all come
// back at the same time. Not thread-safe.
class BackOff {
 public:
  BackOff(absl::Duration shortest, absl::Duration longest) : range_(shortest), longest_(longest) {}

  // The length of the next pause.
  absl::Duration Next(absl::BitGenRef random);

 private:
  absl::Duration range_;
  absl::Duration longest_;
};

}  // namespace hvd::net::peer

#endif  // BASE_NET_PEER_BACK_OFF_H_
