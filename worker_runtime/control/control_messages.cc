#include "worker_runtime/control/control_messages.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/crypto.h"
#include "base/status_macros.h"

namespace hvd::worker_runtime::control {
namespace {

// The first byte of a frame: whether its message continues in the next frame.
constexpr char kLast = 0, kMore = 1;

absl::Status CheckLength(size_t bytes, size_t max_bytes) {
  if (bytes <= max_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a control message of ", bytes, " bytes is too long: the limit is ", max_bytes));
}

// Removes the frame's seal.
absl::Status TakeSeal(FrameSeal& seal, std::string& frame) {
  const size_t size = frame.size() - std::min(frame.size(), FrameSeal::kBytes);
  const absl::string_view contents = absl::string_view(frame).substr(0, size);
  if (!ConstantTimeEquals(seal.Next(contents), absl::string_view(frame).substr(size))) {
    return absl::InvalidArgumentError("a control message was changed on the way");
  }
  frame.resize(size);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> EncodeMessage(absl::string_view message, FrameSeal* seal) {
  RETURN_IF_ERROR(CheckLength(message.size(), kMostMessageBytes));
  std::string frames;
  do {
    const absl::string_view piece = message.substr(0, net::kMaxFrameBytes - 1 - FrameSeal::kBytes);
    message.remove_prefix(piece.size());
    const char head = message.empty() ? kLast : kMore;
    std::string frame = absl::StrCat(absl::string_view(&head, 1), piece);
    if (seal != nullptr) frame += seal->Next(frame);
    frames += net::EncodeFrame(frame);
  } while (!message.empty());
  return frames;
}

absl::StatusOr<std::optional<std::string>> MessageDecoder::Next() {
  while (true) {
    ASSIGN_OR_RETURN(std::optional<std::string> frame, frames_.Next());
    if (!frame.has_value()) return std::nullopt;
    ++count_;
    if (seal_ != nullptr) RETURN_IF_ERROR(TakeSeal(*seal_, *frame));
    if (frame->empty()) return absl::InvalidArgumentError("an empty frame is no control message");
    RETURN_IF_ERROR(CheckLength(begun_.size() + frame->size() - 1, max_bytes_));
    begun_.append(*frame, 1);
    if (frame->front() == kLast) return std::exchange(begun_, {});
  }
}

}  // namespace hvd::worker_runtime::control
