#include "agent/output/frame_writer.h"

#include <memory>
#include <string>
#include <thread>

#include "base/fd.h"
#include "base/net/frames.h"
#include "gtest/gtest.h"

namespace hvd::agent::output {
namespace {

pb::AgentFrame Line(const std::string& text) {
  pb::AgentFrame frame;
  frame.mutable_output()->set_line(text);
  return frame;
}

class FrameWriterTest : public testing::Test {
 protected:
  void SetUp() override { signal(SIGPIPE, SIG_IGN); }

  Pipe pipe_ = MakePipe().value();
  std::unique_ptr<EventLoop> loop_ = EventLoop::Create().value();
  FrameWriter writer_{*loop_, pipe_.write.get()};
};

TEST_F(FrameWriterTest, Send_ReaderSlow_GetsFullAndThenIdleAndLosesNothing) {
  int sent = 0;
  for (; !writer_.full(); ++sent) writer_.Send(Line(std::string(1000, 'x') + std::to_string(sent)));
  writer_.set_on_idle([this] { loop_->Stop(); });
  std::thread reader([&] {
    for (int i = 0; i < sent; ++i) {
      std::string payload = net::ReadFrame(pipe_.read.get(), net::kMaxFrameBytes).value();
      payload.pop_back();  // the line end
      pb::AgentFrame frame;
      ASSERT_TRUE(frame.ParseFromString(payload));
      ASSERT_EQ(frame.output().line(), std::string(1000, 'x') + std::to_string(i));
    }
  });
  loop_->Run();
  reader.join();
  EXPECT_TRUE(writer_.idle());
}

TEST_F(FrameWriterTest, Send_ReaderGoesAway_DropsAndIsIdle) {
  while (!writer_.full()) writer_.Send(Line(std::string(1000, 'x')));
  writer_.set_on_idle([this] { loop_->Stop(); });
  pipe_.read.reset();
  loop_->Run();
  writer_.Send(Line("more"));
  EXPECT_TRUE(writer_.idle());
}

}  // namespace
}  // namespace hvd::agent::output
