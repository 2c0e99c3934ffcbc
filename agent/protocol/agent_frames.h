// Takes an agent's stdout apart: first whatever a login shell printed, then frames.
#ifndef AGENT_PROTOCOL_AGENT_FRAMES_H_
#define AGENT_PROTOCOL_AGENT_FRAMES_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/net/frames.h"
#include "proto/agent.pb.h"

namespace hvd::agent::protocol {

// The last bytes of a text that may be endless.
class TextTail {
 public:
  static constexpr size_t kMaxBytes = 4096;

  void Append(absl::string_view text);
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// Not thread-safe.
class AgentFrameReader {
 public:
  // Takes bytes as they come and calls `take` for each whole frame.
  //   InvalidArgument: these are not frames of this version; the stream can't be read any further.
  absl::Status Append(absl::string_view bytes, const std::function<void(pb::AgentFrame&&)>& take);

  // What came before the frames; once frames have begun, nothing.
  const std::string& noise() const { return noise_.text(); }

 private:
  bool in_frames_ = false;
  size_t skipped_ = 0;
  std::string unmatched_;  // may be the beginning of kFrameMagic
  TextTail noise_;
  net::FrameDecoder decoder_{net::kMaxFrameBytes};
};

}  // namespace hvd::agent::protocol

#endif  // AGENT_PROTOCOL_AGENT_FRAMES_H_
