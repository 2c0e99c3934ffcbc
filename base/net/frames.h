// Messages on byte streams: each is its length as four bytes, most significant first, then its
// bytes. Whoever reads gives a bound, so that no peer can make it keep more than that.
#ifndef BASE_NET_FRAMES_H_
#define BASE_NET_FRAMES_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hvd::net {

// Enough for a job's environment or one piece of worker output.
inline constexpr size_t kMaxFrameBytes = 16 << 20;

// `payload` with its length in front. REQUIRES: payload.size() <= kMaxFrameBytes.
std::string EncodeFrame(absl::string_view payload);

// Takes bytes as they come and gives whole messages. Not thread-safe.
class FrameDecoder {
 public:
  explicit FrameDecoder(size_t max_bytes) : max_bytes_(max_bytes) {}

  void Append(absl::string_view bytes) { buffer_.append(bytes.data(), bytes.size()); }

  // The next message; nullopt: not yet whole.   InvalidArgument: longer than the bound; the stream
  // can't be read any further.
  absl::StatusOr<std::optional<std::string>> Next();

  // Whether no part of a message is waiting for the rest.
  bool empty() const { return consumed_ == buffer_.size(); }

 private:
  const size_t max_bytes_;
  std::string buffer_;
  size_t consumed_ = 0;  // of buffer_
};

// Writes one message to a blocking descriptor; REQUIRES as WriteAll.   Unavailable: the reader is
// gone.
absl::Status WriteFrame(int fd, absl::string_view payload);

// Reads one message from a blocking descriptor, and not a byte more.
//   OutOfRange: the stream ended before the message.   DataLoss: it ended inside. InvalidArgument:
//   longer than the bound. DeadlineExceeded: the socket's SO_RCVTIMEO has passed.
absl::StatusOr<std::string> ReadFrame(int fd, size_t max_bytes);

}  // namespace hvd::net

#endif  // BASE_NET_FRAMES_H_
