#include "launcher/report/screen.h"

#include <fcntl.h>
#include <unistd.h>

#include "gtest/gtest.h"

namespace hvd::launcher::report {
namespace {

TEST(Redraw, WhatDoesNotFit_IsCut) {
  EXPECT_EQ(Redraw("12345\n\nab\ncd\n", {4, 5}),
            "\x1b[H1234\x1b[K\r\n\x1b[K\r\nab\x1b[K\r\n\x1b[J");
  EXPECT_EQ(Redraw("a\n", {1, 1}), "\x1b[H\x1b[J");
}

TEST(Redraw, ControlCharacters_DoNotReachTheTerminal) {
  EXPECT_EQ(Redraw("a\x1b[2Jb", {24, 80}), "\x1b[Ha?[2Jb\x1b[K\r\n\x1b[J");
}

TEST(SizeOfScreen, NoTerminal_HasTheUsualSize) {
  const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(SizeOfScreen(fd).columns, 80u);
  EXPECT_EQ(SizeOfScreen(fd).rows, 24u);
  close(fd);
}

}  // namespace
}  // namespace hvd::launcher::report
