#include "base/net/frames.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/fd.h"
#include "base/status_macros.h"

namespace hvd::net {
namespace {

constexpr size_t kHeaderBytes = 4;

size_t DecodeLength(const char* header) {
  size_t length = 0;
  for (size_t i = 0; i < kHeaderBytes; ++i) {
    length = length << 8 | static_cast<uint8_t>(header[i]);
  }
  return length;
}

absl::Status CheckLength(size_t length, size_t max_bytes) {
  if (length <= max_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a message of ", length, " bytes, where at most ", max_bytes, " are taken"));
}

// Reads exactly `size` bytes. `at_start`: nothing of the message was read so far.
absl::Status ReadExactly(int fd, char* out, size_t size, bool at_start) {
  for (size_t done = 0; done < size;) {
    const IoResult result = ReadSome(fd, out + done, size - done);
    // On a blocking socket this means that its receive timeout (SO_RCVTIMEO) has passed.
    if (result.would_block) return absl::DeadlineExceededError("no message in time");
    if (result.end && at_start && done == 0) return absl::OutOfRangeError("end of stream");
    if (result.end) return absl::DataLossError("the stream ended inside a message");
    done += result.bytes;
  }
  return absl::OkStatus();
}

}  // namespace

std::string EncodeFrame(absl::string_view payload) {
  std::string frame;
  frame.reserve(kHeaderBytes + payload.size());
  for (int shift = 24; shift >= 0; shift -= 8) {
    frame.push_back(static_cast<char>(payload.size() >> shift & 0xff));
  }
  frame.append(payload.data(), payload.size());
  return frame;
}

absl::StatusOr<std::optional<std::string>> FrameDecoder::Next() {
  const size_t available = buffer_.size() - consumed_;
  if (available < kHeaderBytes) return std::nullopt;
  const size_t length = DecodeLength(buffer_.data() + consumed_);
  RETURN_IF_ERROR(CheckLength(length, max_bytes_));
  if (available < kHeaderBytes + length) {
    // The rest is moved to the front only when more bytes are needed. If each message were removed
    // from the front at once, many small messages in one read would cost quadratic time.
    buffer_.erase(0, consumed_);
    consumed_ = 0;
    return std::nullopt;
  }
  std::string payload = buffer_.substr(consumed_ + kHeaderBytes, length);
  consumed_ += kHeaderBytes + length;
  if (consumed_ == buffer_.size()) {
    buffer_.clear();
    consumed_ = 0;
  }
  return payload;
}

absl::Status WriteFrame(int fd, absl::string_view payload) {
  return WriteAll(fd, EncodeFrame(payload));
}

absl::StatusOr<std::string> ReadFrame(int fd, size_t max_bytes) {
  char header[kHeaderBytes];
  RETURN_IF_ERROR(ReadExactly(fd, header, kHeaderBytes, /*at_start=*/true));
  // The bound is checked before the buffer is allocated: the length comes from the peer.
  const size_t length = DecodeLength(header);
  RETURN_IF_ERROR(CheckLength(length, max_bytes));
  std::string payload(length, '\0');
  RETURN_IF_ERROR(ReadExactly(fd, payload.data(), length, /*at_start=*/false));
  return payload;
}

}  // namespace hvd::net
