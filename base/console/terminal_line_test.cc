#include "base/console/terminal_line.h"

#include <fcntl.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "gtest/gtest.h"

namespace hvd::console {
namespace {

class TerminalLineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(openpty(&keyboard_, &screen_, nullptr, nullptr, nullptr), 0);
    SetColumns(40);
  }
  void TearDown() override {
    close(keyboard_);
    close(screen_);
  }
  void SetColumns(unsigned short columns) {
    winsize size = {};
    size.ws_row = 10;
    size.ws_col = columns;
    ASSERT_EQ(ioctl(screen_, TIOCSWINSZ, &size), 0);
  }

  int keyboard_ = -1;
  int screen_ = -1;
};

TEST_F(TerminalLineTest, Draw_Unchanged_WritesNothing) {
  TerminalLine line(screen_);
  EXPECT_EQ(line.Erase(), "");
  EXPECT_EQ(line.Draw("one"), "\rone\x1b[J\r");
  EXPECT_EQ(line.Draw("one"), "");
  EXPECT_EQ(line.Draw("two"), "\rtwo\x1b[J\r");
  EXPECT_EQ(line.Draw(""), "\r\x1b[J");
  EXPECT_EQ(line.Draw(""), "");
}

TEST_F(TerminalLineTest, Erase_ThenDrawnAgain) {
  TerminalLine line(screen_);
  line.Draw("one");
  EXPECT_EQ(line.Erase(), "\r\x1b[J");
  line.Passed("[0]<stdout>:hello\n");
  EXPECT_EQ(line.Draw("one"), "\rone\x1b[J\r");
}

TEST_F(TerminalLineTest, ProgressBarOfAWorker_StaysAbove) {
  TerminalLine line(screen_);
  line.Passed("50%\r");
  EXPECT_EQ(line.Draw("one"), "\none\x1b[J\r");
  EXPECT_EQ(line.Draw("two"), "\rtwo\x1b[J\r");
  EXPECT_EQ(line.Erase(), "\r\x1b[J\x1b[A");
  line.Passed("100%\n");
  EXPECT_EQ(line.Draw("two"), "\rtwo\x1b[J\r");
}

TEST_F(TerminalLineTest, Draw_CutsAtTheWidthOfTheMoment) {
  TerminalLine line(screen_);
  SetColumns(6);
  EXPECT_EQ(line.Draw("0123456789"), "\r01234\x1b[J\r");
  SetColumns(8);
  EXPECT_EQ(line.Draw("0123456789"), "\r0123456\x1b[J\r");
  SetColumns(1);
  EXPECT_EQ(line.Draw("0123456789"), "\r\x1b[J");
  SetColumns(0);  // unknown
  EXPECT_EQ(line.Draw(std::string(100, 'x')), "\r" + std::string(79, 'x') + "\x1b[J\r");
}

TEST_F(TerminalLineTest, Draw_NothingThatMovesTheCursor) {
  TerminalLine line(screen_);
  EXPECT_EQ(line.Draw("a\nb\x1b[2J\xc3\xa4"), "\ra?b?[2J??\x1b[J\r");
}

// Runs in a process whose terminal is `screen`; returns whether `line` writes nothing once another
// process group is in the foreground.
bool WritesNothingInTheBackground(int screen) {
  TerminalLine line(screen);
  if (setsid() < 0 || ioctl(screen, TIOCSCTTY, 0) != 0 || line.Draw("one").empty()) return false;
  const pid_t shell = fork();
  if (shell == 0) {
    while (true) pause();
  }
  const bool moved = setpgid(shell, shell) == 0 && tcsetpgrp(screen, shell) == 0;
  const bool silent = line.Erase().empty() && line.Draw("two").empty();
  TerminalLine fresh(screen);
  const bool fresh_is_silent = fresh.Draw("one").empty();
  kill(shell, SIGKILL);
  waitpid(shell, nullptr, 0);
  return moved && silent && fresh_is_silent;
}

TEST_F(TerminalLineTest, InTheBackground_TheShellsLineStays) {
  const pid_t child = fork();
  if (child == 0) _exit(WritesNothingInTheBackground(screen_) ? 0 : 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(TerminalLineTest, CanHave_OnlyTerminalsWithAName) {
  EXPECT_TRUE(CanHaveTerminalLine(screen_, {{"TERM", "xterm"}}));
  EXPECT_FALSE(CanHaveTerminalLine(screen_, {{"TERM", "dumb"}}));
  EXPECT_FALSE(CanHaveTerminalLine(screen_, {{"TERM", ""}}));
  EXPECT_FALSE(CanHaveTerminalLine(screen_, {}));
  const int file = open("/dev/null", O_WRONLY | O_CLOEXEC);
  EXPECT_FALSE(CanHaveTerminalLine(file, {{"TERM", "xterm"}}));
  close(file);
}

}  // namespace
}  // namespace hvd::console
