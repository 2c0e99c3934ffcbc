// Seals of control frames: what was changed, added, left out or repeated on the way is noticed.
#ifndef WORKER_RUNTIME_CONTROL_FRAME_SEAL_H_
#define WORKER_RUNTIME_CONTROL_FRAME_SEAL_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "worker_runtime/control/siphash.h"

namespace hvd::worker_runtime::control {

// One direction of one plain connection; TLS needs no seals. Both ends have one and call Next for
// each frame, in order. The epoch's secret differs from that of every other world and process set,
// and a world has one connection for each pair of ranks, so a frame of another one never fits. Not
// thread-safe.
class FrameSeal {
 public:
  static constexpr size_t kBytes = SipHash::kBytes;

  // `secret`: the epoch's.
  FrameSeal(absl::string_view secret, int from, int to);

  // The seal of the next frame, with these contents.
  std::string Next(absl::string_view contents);

 private:
  const SipHash hash_;
  uint64_t number_ = 0;  // of the next frame
};

}  // namespace hvd::worker_runtime::control

#endif  // WORKER_RUNTIME_CONTROL_FRAME_SEAL_H_
