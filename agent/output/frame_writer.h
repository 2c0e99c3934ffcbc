// A writer of frames to the launcher, on the agent's stdout.
#ifndef AGENT_OUTPUT_FRAME_WRITER_H_
#define AGENT_OUTPUT_FRAME_WRITER_H_

#include <string>

#include "absl/strings/string_view.h"
#include "agent/output/agent_output.h"
#include "base/event_loop.h"

namespace hvd::agent::output {

// Buffers what the pipe does not accept at once. Not thread-safe: belongs to the loop's thread.
class FrameWriter : public AgentOutput {
 public:
  // The number of waiting bytes from which full() is true.
  static constexpr size_t kFullBytes = 1 << 20;

  // `fd` is borrowed and made non-blocking.
  FrameWriter(EventLoop& loop, int fd);
  ~FrameWriter() override;

  // Writes bytes that are not a frame.
  void SendRaw(absl::string_view bytes);
  // Drops the frame if the launcher is gone.
  void Send(const pb::AgentFrame& frame) override;

  bool full() const override { return waiting() >= kFullBytes; }
  bool idle() const override { return waiting() == 0; }

 private:
  size_t waiting() const { return buffer_.size() - written_; }
  void OnWritable();
  void WriteWhatGoes();

  EventLoop& loop_;
  const int fd_;
  std::string buffer_;
  size_t written_ = 0;  // of buffer_
  bool watching_ = false;
  bool broken_ = false;
};

}  // namespace hvd::agent::output

#endif  // AGENT_OUTPUT_FRAME_WRITER_H_
