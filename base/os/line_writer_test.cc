#include "base/os/line_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "tests/support/full_disk.h"

namespace hvd::os {
namespace {

std::string Dropped(uint64_t count) { return absl::StrCat("(", count, " dropped)\n"); }

std::string ReadAll(const Fd& fd) {
  std::string text;
  char buffer[4096];
  for (IoResult got; !(got = ReadSome(fd.get(), buffer, sizeof(buffer))).end;) {
    text.append(buffer, got.bytes);
  }
  return text;
}

TEST(LineWriterTest, Lines_AreWrittenInOrder_AndAllBeforeItGoes) {
  Pipe pipe = *MakePipe();
  std::string expected;
  {
    LineWriter writer(std::move(pipe.write), Dropped);
    for (int i = 0; i < 100; ++i) {
      writer.Write(absl::StrCat(i, "\n"));
      absl::StrAppend(&expected, i, "\n");
    }
  }
  EXPECT_EQ(ReadAll(pipe.read), expected);
}

TEST(LineWriterTest, Flush_WaitsForWhatWasWrittenBefore) {
  Pipe pipe = *MakePipe();
  LineWriter writer(std::move(pipe.write), Dropped);
  writer.Write("one\n");
  writer.Write("two\n");
  writer.Flush();
  char buffer[16];
  EXPECT_EQ(ReadSome(pipe.read.get(), buffer, sizeof(buffer)).bytes, 8u);
}

// A pipe that nobody reads: a hung disk, a stopped reader.
TEST(LineWriterTest, NotRead_WritesNeverBlock_AndTheLossIsReportedLater) {
  Pipe pipe = *MakePipe();
  const std::string line = std::string(1 << 16, 'x') + "\n";
  const uint64_t many = 4 * LineWriter::kMostWaitingBytes / line.size();
  LineWriter writer(std::move(pipe.write), Dropped);
  for (uint64_t i = 0; i < many; ++i) writer.Write(line);
  std::string text;
  char buffer[1 << 16];
  const auto read_until = [&](const auto& found) {
    while (!found()) {
      const IoResult got = ReadSome(pipe.read.get(), buffer, sizeof(buffer));
      ASSERT_FALSE(got.end);
      text.append(buffer, got.bytes);
    }
  };
  read_until([&] { return absl::StrContains(text, " dropped)\n"); });
  writer.Write("last\n");
  read_until([&] { return absl::EndsWith(text, "last\n"); });
  // The thread may have taken the first lines while others were still being added. Then there are
  // two reports on dropped lines, before and after the lines that found room in between.
  uint64_t lines = 0, dropped = 0;
  for (absl::string_view each : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    uint64_t count = 0;
    if (absl::ConsumePrefix(&each, "(")) {
      ASSERT_TRUE(absl::SimpleAtoi(each.substr(0, each.find(' ')), &count)) << each;
      dropped += count;
    } else if (each != "last") {
      ++lines;
    }
  }
  EXPECT_EQ(lines + dropped, many);
  EXPECT_GT(lines, 0u);
}

TEST(LineWriterTest, WhatHasBeenWritten_TakesNoRoomAnyMore) {
  Pipe pipe = *MakePipe();
  const std::string line = std::string(LineWriter::kMostWaitingBytes / 2, 'x') + "\n";
  LineWriter writer(std::move(pipe.write), Dropped);
  for (int i = 0; i < 4; ++i) {
    writer.Write(line);
    std::string text(line.size(), '\0');
    for (size_t read = 0; read < text.size();) {
      const IoResult got = ReadSome(pipe.read.get(), &text[read], text.size() - read);
      ASSERT_FALSE(got.end);
      read += got.bytes;
    }
    ASSERT_EQ(text, line) << i;
  }
}

TEST(LineWriterTest, NeverRead_DestructorReturns) {
  Pipe pipe = *MakePipe();
  {
    LineWriter writer(std::move(pipe.write), Dropped);
    writer.Write(std::string(1 << 20, 'x') + "\n");
  }
  char c = 0;
  EXPECT_EQ(read(pipe.read.get(), &c, 1), 1);
}

TEST(LineWriterTest, DiskIsFull_IsReportedOnce) {
  int told = 0;
  {
    LineWriter writer(Fd(open("/dev/full", O_WRONLY | O_CLOEXEC)), Dropped);
    writer.OnError([&told](int error) {
      EXPECT_EQ(error, ENOSPC);
      ++told;
    });
    for (int i = 0; i < 10; ++i) writer.Write("line\n");
  }
  EXPECT_EQ(told, 1);
}

// Room for a line and a half, then for all.
TEST(LineWriterTest, DiskWasFull_NextLineIsComplete_AndTheLossIsReported) {
  const std::string path = testing::TempDir() + "/line_writer_" + std::to_string(getpid());
  auto disk = std::make_unique<FullDisk>(9);
  absl::Notification full;
  {
    LineWriter writer(Fd(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)),
                      Dropped);
    writer.OnError([&full](int) { full.Notify(); });
    writer.Write("first\n");
    writer.Write("second\n");
    full.WaitForNotification();
    disk.reset();
    writer.Write("third\n");
  }
  std::ostringstream contents;
  contents << std::ifstream(path).rdbuf();
  unlink(path.c_str());
  EXPECT_EQ(contents.str(), "first\nsec\n(1 dropped)\nthird\n");
}

}  // namespace
}  // namespace hvd::os
