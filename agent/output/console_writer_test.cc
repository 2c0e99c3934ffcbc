#include "agent/output/console_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <string>

#include "base/fd.h"
#include "gtest/gtest.h"

namespace hvd::agent::output {
namespace {

class ConsoleWriterTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { signal(SIGPIPE, SIG_IGN); }

  void SendLine(int rank, bool is_stderr, const std::string& line) {
    pb::AgentFrame frame;
    frame.mutable_output()->set_rank(rank);
    frame.mutable_output()->set_is_stderr(is_stderr);
    frame.mutable_output()->set_line(line);
    writer_.Send(frame);
  }
  // Runs the loop until all is written.
  void Drain() {
    writer_.set_on_idle([this] { loop_->Stop(); });
    loop_->Run();
  }
  static std::string ReadAll(Fd fd) {
    std::string text;
    char buffer[4096];
    for (IoResult got; !(got = ReadSome(fd.get(), buffer, sizeof(buffer))).end;) {
      text.append(buffer, got.bytes);
    }
    return text;
  }

  std::unique_ptr<EventLoop> loop_ = EventLoop::Create().value();
  Pipe out_ = MakePipe().value();
  Pipe err_ = MakePipe().value();
  ConsoleWriter writer_{*loop_, out_.write.get(), err_.write.get()};
};

TEST_F(ConsoleWriterTest, Send_LinesAndWords_AreTextWithRanks) {
  SendLine(0, false, "hello\n");
  SendLine(12, true, "careful\n");
  SendLine(1, false, "unfinished");
  pb::AgentFrame frame;
  frame.mutable_ready()->set_version("1");
  writer_.Send(frame);
  frame.mutable_ready()->set_warning("no such directory");
  writer_.Send(frame);
  frame.mutable_refusal()->set_message("no command");
  writer_.Send(frame);
  EXPECT_FALSE(writer_.idle());
  Drain();
  EXPECT_TRUE(writer_.idle());
  out_.write.reset();
  err_.write.reset();
  EXPECT_EQ(ReadAll(std::move(out_.read)), "[0]<stdout>:hello\n[1]<stdout>:unfinished\n");
  EXPECT_EQ(ReadAll(std::move(err_.read)),
            "[12]<stderr>:careful\nhorovod-agent: no such directory\nhorovod-agent: no command\n");
}

TEST_F(ConsoleWriterTest, Send_DiskIsFull_IsReportedOnce) {
  const Fd full(open("/dev/full", O_WRONLY | O_CLOEXEC));
  ASSERT_EQ(dup3(full.get(), out_.write.get(), O_CLOEXEC), out_.write.get());
  for (int i = 0; i < 2; ++i) {
    SendLine(0, false, "lost\n");
    Drain();
  }
  SendLine(0, true, "end\n");
  Drain();
  err_.write.reset();
  EXPECT_EQ(ReadAll(std::move(err_.read)),
            "horovod-agent: can't write to stdout any more: No space left on device; output is "
            "missing there\n[0]<stderr>:end\n");
}

TEST_F(ConsoleWriterTest, Full_NobodyReads_UntilTheReaderIsGone) {
  const std::string line(64 << 10, 'x');
  while (!writer_.full()) SendLine(0, false, line);
  out_.read.reset();
  Drain();
  EXPECT_FALSE(writer_.full());
  EXPECT_TRUE(writer_.idle());
}

}  // namespace
}  // namespace hvd::agent::output
