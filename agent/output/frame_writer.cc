#include "agent/output/frame_writer.h"

#include "agent/protocol/agent_frames.h"
#include "base/fd.h"

namespace hvd::agent::output {

FrameWriter::FrameWriter(EventLoop& loop, int fd) : loop_(loop), fd_(fd) {
  (void)SetNonBlocking(fd_);
}

FrameWriter::~FrameWriter() { loop_.Forget(fd_); }

void FrameWriter::Send(const pb::AgentFrame& frame) { SendRaw(protocol::EncodeAgentFrame(frame)); }

void FrameWriter::SendRaw(absl::string_view bytes) {
  if (broken_) return;
  const bool was_idle = idle();
  buffer_.append(bytes.data(), bytes.size());
  if (was_idle) WriteWhatGoes();
  if (idle()) return;
  if (!watching_) {
    // epoll does not support regular files (stdout may be one); but writes to them do not block, so
    // nothing is left to wait for.
    watching_ = loop_.Watch(fd_, EPOLLOUT, [this](uint32_t) { OnWritable(); }).ok();
  } else {
    loop_.Change(fd_, EPOLLOUT);
  }
}

void FrameWriter::OnWritable() {
  WriteWhatGoes();
  if (!idle()) return;
  loop_.Change(fd_, 0);
  SayIdle();
}

void FrameWriter::WriteWhatGoes() {
  while (!idle()) {
    const IoResult put = WriteSome(fd_, absl::string_view(buffer_).substr(written_));
    written_ += put.bytes;
    if (put.would_block) break;
    if (put.end) {
      broken_ = true;
      written_ = buffer_.size();
    }
  }
  // The rest is moved to the front only when at least kFullBytes were written: the cost stays
  // linear.
  if (idle() || written_ >= kFullBytes) {
    buffer_.erase(0, written_);
    written_ = 0;
  }
}

}  // namespace hvd::agent::output
