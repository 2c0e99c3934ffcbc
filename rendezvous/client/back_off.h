// Exponential back-off with jitter between retries.
#ifndef RENDEZVOUS_CLIENT_BACK_OFF_H_
#define RENDEZVOUS_CLIENT_BACK_OFF_H_

#include "absl/random/bit_gen_ref.h"
#include "absl/time/time.h"

namespace hvd::rendezvous::client {

// The range of a pause doubles from 50 ms to `longest`. Each pause is drawn from the upper half of
// its range, so that workers that lost the daemon at the same time do not all reconnect at the same
// time. Not thread-safe.
class BackOff {
 public:
  explicit BackOff(absl::Duration longest = absl::Seconds(1)) : longest_(longest) {}

  // The length of the next pause.
  absl::Duration Next(absl::BitGenRef random);

 private:
  absl::Duration longest_;
  absl::Duration range_ = absl::Milliseconds(50);
};

}  // namespace hvd::rendezvous::client

#endif  // RENDEZVOUS_CLIENT_BACK_OFF_H_
