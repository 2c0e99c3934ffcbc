// Length-prefixed messages on byte streams. A frame is the length as four bytes in big-endian
// order, then the bytes. The reader sets a bound on the length, so that a peer can't exhaust its
// memory.
#ifndef BASE_NET_FRAMES_H_
#define BASE_NET_FRAMES_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hvd::net {

// Sufficient for a job's environment or one piece of worker output.
inline constexpr size_t kMaxFrameBytes = 16 << 20;

// Returns `payload` with its length prefix. REQUIRES: payload.size() <= kMaxFrameBytes.
std::string EncodeFrame(absl::string_view payload);

// A decoder: takes bytes as they arrive and returns whole messages. Not thread-safe.
class FrameDecoder {
 public:
  explicit FrameDecoder(size_t max_bytes) : max_bytes_(max_bytes) {}

  void Append(absl::string_view bytes) { buffer_.append(bytes.data(), bytes.size()); }

  // The next message; nullopt: it is not complete yet.
  // Errors:
  //   - InvalidArgument: the message exceeds the bound; the stream can't be read any further.
  absl::StatusOr<std::optional<std::string>> Next();

  // Whether all bytes have been returned as messages.
  bool empty() const { return consumed_ == buffer_.size(); }

 private:
  const size_t max_bytes_;
  std::string buffer_;
  size_t consumed_ = 0;  // of buffer_
};

// Writes one message to a blocking descriptor. REQUIRES: as WriteAll.
// Errors:
//   - Unavailable: the reader is gone.
absl::Status WriteFrame(int fd, absl::string_view payload);

// Reads exactly one message from a blocking descriptor, without reading ahead.
// Errors:
//   - OutOfRange: the stream ended before the message.
//   - DataLoss: the stream ended inside the message.
//   - InvalidArgument: the message exceeds the bound.
//   - DeadlineExceeded: the socket's SO_RCVTIMEO has passed.
absl::StatusOr<std::string> ReadFrame(int fd, size_t max_bytes);

}  // namespace hvd::net

#endif  // BASE_NET_FRAMES_H_
