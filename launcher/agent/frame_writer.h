// The agent's stdout: frames to the launcher.
#ifndef LAUNCHER_AGENT_FRAME_WRITER_H_
#define LAUNCHER_AGENT_FRAME_WRITER_H_

#include <functional>
#include <string>

#include "absl/strings/string_view.h"
#include "base/event_loop.h"
#include "proto/agent.pb.h"

namespace hvd {

// Never waits: what the launcher does not take at once is kept, and whoever produces much asks
// full() first. Belongs to the loop's thread.
class FrameWriter {
 public:
  // When that much is waiting, no more should be produced.
  static constexpr size_t kFullBytes = 1 << 20;

  // `fd` is borrowed and made non-blocking.
  FrameWriter(EventLoop& loop, int fd);
  ~FrameWriter();

  // Writes bytes that are not a frame.
  void SendRaw(absl::string_view bytes);
  // Dropped if the launcher is gone.
  void Send(const pb::AgentFrame& frame);

  bool full() const { return waiting() >= kFullBytes; }
  bool idle() const { return waiting() == 0; }

  // Called each time when everything has been written, or can't be written any more because the
  // launcher is gone.
  void set_on_idle(std::function<void()> on_idle) { on_idle_ = std::move(on_idle); }

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
  std::function<void()> on_idle_;
};

}  // namespace hvd

#endif  // LAUNCHER_AGENT_FRAME_WRITER_H_
