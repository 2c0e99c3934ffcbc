// The encoder and parser of an agent's stdout: possibly text printed by a login shell, then frames.
#ifndef AGENT_PROTOCOL_AGENT_FRAMES_H_
#define AGENT_PROTOCOL_AGENT_FRAMES_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/net/frames.h"
#include "proto/agent.pb.h"

namespace hvd::agent::protocol {

// The last bytes of a text of any length.
class TextTail {
 public:
  static constexpr size_t kMaxBytes = 4096;

  void Append(absl::string_view text);
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// The wire format of a frame. It ends with a newline, because srun and similar commands forward
// output line by line.
std::string EncodeAgentFrame(const pb::AgentFrame& frame);

// Not thread-safe.
class AgentFrameReader {
 public:
  // Takes bytes as they arrive and calls `take` for each whole frame.
  // Errors:
  //   - InvalidArgument: not frames of this version; the stream can't be read any further.
  absl::Status Append(absl::string_view bytes, const std::function<void(pb::AgentFrame&&)>& take);

  // The end of the text before the frames; empty once frames have begun.
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
