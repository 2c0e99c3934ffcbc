// Durations in messages.
#ifndef RENDEZVOUS_TRANSPORT_MESSAGE_TIME_H_
#define RENDEZVOUS_TRANSPORT_MESSAGE_TIME_H_

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"

namespace hvd::rendezvous::transport {

// In whole milliseconds; the nearest value that the field can have.
inline uint32_t ToMilliseconds(absl::Duration duration) {
  return static_cast<uint32_t>(
      std::clamp<int64_t>(absl::ToInt64Milliseconds(duration), 0, UINT32_MAX));
}

}  // namespace hvd::rendezvous::transport

#endif  // RENDEZVOUS_TRANSPORT_MESSAGE_TIME_H_
