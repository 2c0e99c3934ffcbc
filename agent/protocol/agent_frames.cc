#include "agent/protocol/agent_frames.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "agent/protocol/agent_protocol.h"
#include "base/status_macros.h"

namespace hvd::agent::protocol {
namespace {

// The limit for a login shell's output before the first frame.
constexpr size_t kMaxNoiseBytes = 1 << 20;

constexpr char kLineEnd[] = "\n";

}  // namespace

void TextTail::Append(absl::string_view text) {
  text_.append(text.data(), text.size());
  if (text_.size() > kMaxBytes) text_.erase(0, text_.size() - kMaxBytes);
}

std::string EncodeAgentFrame(const pb::AgentFrame& frame) {
  return net::EncodeFrame(absl::StrCat(frame.SerializeAsString(), kLineEnd));
}

absl::Status AgentFrameReader::Append(absl::string_view bytes,
                                      const std::function<void(pb::AgentFrame&&)>& take) {
  const absl::string_view magic(kFrameMagic);
  if (in_frames_) {
    decoder_.Append(bytes);
  } else {
    // Kept for the user: if no frames come, it says why the agent did not start ("command not
    // found").
    noise_.Append(bytes);
    skipped_ += bytes.size();
    unmatched_.append(bytes.data(), bytes.size());
    const size_t found = absl::string_view(unmatched_).find(magic);
    if (found != absl::string_view::npos) {
      in_frames_ = true;
      // A login shell's greeting explains nothing once the agent has answered.
      noise_ = TextTail();
      decoder_.Append(absl::string_view(unmatched_).substr(found + magic.size()));
    } else if (skipped_ > kMaxNoiseBytes) {
      return absl::InvalidArgumentError("endless output of some other program");
    } else if (unmatched_.size() >= magic.size()) {
      // Keeps only as many bytes as may be the beginning of the magic line.
      unmatched_.erase(0, unmatched_.size() - magic.size() + 1);
    }
  }
  for (;;) {
    ASSIGN_OR_RETURN(std::optional<std::string> payload, decoder_.Next());
    if (!payload.has_value()) return absl::OkStatus();
    pb::AgentFrame frame;
    absl::string_view message = *payload;
    // A frame of another version may end otherwise, and parse all the same.
    const bool whole = absl::ConsumeSuffix(&message, kLineEnd);
    if (!whole || !frame.ParseFromArray(message.data(), static_cast<int>(message.size()))) {
      return absl::InvalidArgumentError("a broken message");
    }
    take(std::move(frame));
  }
}

}  // namespace hvd::agent::protocol
