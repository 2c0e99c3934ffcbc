// The encoding of control messages on a byte stream: each is a frame, or several if it is too long
// for one.
#ifndef WORKER_RUNTIME_CONTROL_CONTROL_MESSAGES_H_
#define WORKER_RUNTIME_CONTROL_CONTROL_MESSAGES_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/net/frames.h"

namespace hvd::worker_runtime::control {

// More than any message takes whose parts were checked when they were submitted.
inline constexpr size_t kMostMessageBytes = size_t{256} << 20;

// Errors:
//   - InvalidArgument: longer than kMostMessageBytes.
absl::StatusOr<std::string> EncodeMessage(absl::string_view message);

// Takes bytes as they come and returns whole messages. Not thread-safe.
class MessageDecoder {
 public:
  explicit MessageDecoder(size_t max_bytes = kMostMessageBytes) : max_bytes_(max_bytes) {}

  void Append(absl::string_view bytes) { frames_.Append(bytes); }

  // The next message; nullopt: not whole yet.
  // Errors:
  //   - InvalidArgument: too long, or no message; the rest of the stream can't be read.
  absl::StatusOr<std::optional<std::string>> Next();

 private:
  const size_t max_bytes_;
  net::FrameDecoder frames_{net::kMaxFrameBytes};
  std::string begun_;  // the message that is not whole yet
};

}  // namespace hvd::worker_runtime::control

#endif  // WORKER_RUNTIME_CONTROL_CONTROL_MESSAGES_H_
