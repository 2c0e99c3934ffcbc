// The framing of control messages on a byte stream: a message is one frame, or several frames if it
// is too long for one.
#ifndef WORKER_RUNTIME_CONTROL_CONTROL_MESSAGES_H_
#define WORKER_RUNTIME_CONTROL_CONTROL_MESSAGES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/net/frames.h"
#include "worker_runtime/control/frame_seal.h"

namespace hvd::worker_runtime::control {

// The largest message. Operations are limited when they are submitted (kMostOperationBytes), so
// valid messages are smaller.
inline constexpr size_t kMostMessageBytes = size_t{256} << 20;

// Returns the frames of a message, each with a seal; nullptr: without.
// Errors:
//   - InvalidArgument: the message is longer than kMostMessageBytes.
absl::StatusOr<std::string> EncodeMessage(absl::string_view message, FrameSeal* seal = nullptr);

// An incremental decoder: takes bytes as they arrive and returns whole messages. Not thread-safe.
class MessageDecoder {
 public:
  // `seal` is that of the sender; nullptr: it seals nothing. Borrowed.
  explicit MessageDecoder(FrameSeal* seal = nullptr, size_t max_bytes = kMostMessageBytes)
      : seal_(seal), max_bytes_(max_bytes) {}

  void Append(absl::string_view bytes) { frames_.Append(bytes); }

  // Returns the next message; nullopt: it is not complete yet.
  // Errors:
  //   - InvalidArgument: the message is too long or invalid, or was changed on the way. The rest of
  //     the stream can't be read.
  absl::StatusOr<std::optional<std::string>> Next();

  // Whether a part of a message has arrived, but not all of it.
  bool has_part() const { return !frames_.empty() || !begun_.empty(); }
  // The number of whole frames so far.
  uint64_t frames() const { return count_; }

 private:
  FrameSeal* const seal_;
  const size_t max_bytes_;
  uint64_t count_ = 0;
  net::FrameDecoder frames_{net::kMaxFrameBytes};
  std::string begun_;  // the beginning of the next message
};

}  // namespace hvd::worker_runtime::control

#endif  // WORKER_RUNTIME_CONTROL_CONTROL_MESSAGES_H_
