#include "agent/inspection/stack_probe.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::agent::inspection {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

int stack_fd = -1;
bool says_ready = true;

void WriteStack(int) {
  for (const char* piece :
       {"Stack (most recent call first):\n", "  File \"/a/train.py\", line 42 in", " load\n",
        "  File \"/a/train.py\", line 60 in <module>\n"}) {
    (void)!write(stack_fd, piece, strlen(piece));
  }
}

// A child that does nothing. It writes its stack on the signal if it has been given a descriptor.
class StackProbeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Pipe orders = *MakePipe(), answers = *MakePipe();
    child_ = fork();
    if (child_ == 0) Obey(orders.read.get(), answers.write.get());
    orders_ = std::move(orders.write);
    answers_ = std::move(answers.read);
    probe_ = *StackProbe::Create(*loop_, child_);
  }

  void TearDown() override {
    probe_.reset();
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }

  [[noreturn]] static void Obey(int orders, int answers) {
    int fd = -1;
    if (read(orders, &fd, sizeof(fd)) == sizeof(fd)) {
      const std::string path = absl::StrCat("/proc/", getppid(), "/fd/", fd);
      stack_fd = open(path.c_str(), O_WRONLY);
      signal(StackProbe::Signal(), WriteStack);
      if (says_ready) (void)!write(stack_fd, StackProbe::kReady, strlen(StackProbe::kReady));
      (void)!write(answers, "", 1);
    }
    for (;;) pause();
  }

  void LetItShowItsStack() {
    const int fd = probe_->fd();
    char done;
    ASSERT_EQ(write(orders_.get(), &fd, sizeof(fd)), static_cast<ssize_t>(sizeof(fd)));
    ASSERT_EQ(read(answers_.get(), &done, 1), 1);
  }

  StackSample Ask() {
    StackSample result;
    probe_->Ask([&](StackSample sample) {
      result = std::move(sample);
      loop_->Stop();
    });
    loop_->Run();
    return result;
  }

  std::unique_ptr<EventLoop> loop_ = *EventLoop::Create();
  pid_t child_ = 0;
  Fd orders_, answers_;
  std::unique_ptr<StackProbe> probe_;
};

TEST_F(StackProbeTest, Ask_ProcessWithHandler_GivesItsStack) {
  LetItShowItsStack();
  const StackSample sample = Ask();
  EXPECT_EQ(sample.doing, "is at train.py:42 in load");
  EXPECT_THAT(sample.stack, ElementsAre("/a/train.py:42 in load", "/a/train.py:60 in <module>"));
}

TEST_F(StackProbeTest, Ask_StoppedProcess_SaysSo) {
  LetItShowItsStack();
  kill(child_, SIGSTOP);
  int status = 0;
  ASSERT_EQ(waitpid(child_, &status, WUNTRACED), child_);
  const StackSample sample = Ask();
  EXPECT_EQ(sample.doing, "is stopped by a signal (SIGSTOP)");
  EXPECT_THAT(sample.stack, IsEmpty());
}

TEST_F(StackProbeTest, Ask_ProcessWithoutHandler_IsLeftAlone) {
  EXPECT_THAT(Ask().stack, IsEmpty());
  LetItShowItsStack();  // the process is alive
}

class StackProbeOtherHandlerTest : public StackProbeTest {
 protected:
  void SetUp() override {
    says_ready = false;
    StackProbeTest::SetUp();
    says_ready = true;
  }
};

TEST_F(StackProbeOtherHandlerTest, Ask_ForeignHandler_ReturnsNoStack) {
  LetItShowItsStack();
  EXPECT_THAT(Ask().stack, IsEmpty());
}

TEST_F(StackProbeTest, Ask_ProcessThatHasEnded_SaysSo) {
  kill(child_, SIGKILL);
  siginfo_t info;
  ASSERT_EQ(waitid(P_PID, child_, &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(Ask().doing, "has ended");
}

TEST(SampleByKernelTest, ProcDoesNotTell_IsNotTakenForTheEnd) {
  const pid_t gone = fork();
  if (gone == 0) _exit(0);
  siginfo_t info;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(gone), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(SampleByKernel(gone, false).doing, "is in a state that /proc does not show");  // 'Z'
  waitpid(gone, nullptr, 0);
  EXPECT_EQ(SampleByKernel(gone, false).doing, "is in a state that /proc does not show");
  EXPECT_EQ(SampleByKernel(getpid(), true).doing, "has ended");
}

TEST_F(StackProbeTest, Create_NoSuchProcess_IsNotFound) {
  const pid_t gone = fork();
  if (gone == 0) _exit(0);
  waitpid(gone, nullptr, 0);
  EXPECT_TRUE(absl::IsNotFound(StackProbe::Create(*loop_, gone).status()));
}

}  // namespace
}  // namespace hvd::agent::inspection
