#include "base/fd.h"

#include <fcntl.h>
#include <signal.h>

#include <string>

#include "gtest/gtest.h"

namespace hvd {
namespace {

bool IsOpen(int fd) { return fcntl(fd, F_GETFD) >= 0; }

TEST(FdTest, Destructor_OwnsDescriptor_ClosesIt) {
  int number = -1;
  {
    Pipe pipe = MakePipe().value();
    number = pipe.read.get();
    ASSERT_TRUE(IsOpen(number));
  }
  EXPECT_FALSE(IsOpen(number));
}

TEST(FdTest, Move_Always_LeavesOneOwner) {
  Pipe pipe = MakePipe().value();
  const int number = pipe.read.get();
  Fd other = std::move(pipe.read);
  EXPECT_FALSE(pipe.read.valid());
  EXPECT_EQ(other.get(), number);
  other = Fd();
  EXPECT_FALSE(IsOpen(number));
}

TEST(FdTest, MakePipe_Always_ClosesOnExec) {
  Pipe pipe = MakePipe().value();
  EXPECT_TRUE(fcntl(pipe.read.get(), F_GETFD) & FD_CLOEXEC);
  EXPECT_TRUE(fcntl(pipe.write.get(), F_GETFD) & FD_CLOEXEC);
}

TEST(FdTest, ReadSome_EmptyThenDataThenClosed_TellsThemApart) {
  Pipe pipe = MakePipe().value();
  ASSERT_TRUE(SetNonBlocking(pipe.read.get()).ok());
  char buffer[8];
  EXPECT_TRUE(ReadSome(pipe.read.get(), buffer, sizeof(buffer)).would_block);
  ASSERT_TRUE(WriteAll(pipe.write.get(), "abc").ok());
  EXPECT_EQ(ReadSome(pipe.read.get(), buffer, sizeof(buffer)).bytes, 3u);
  pipe.write.reset();
  EXPECT_TRUE(ReadSome(pipe.read.get(), buffer, sizeof(buffer)).end);
}

TEST(FdTest, WriteAll_ReaderGone_IsUnavailable) {
  signal(SIGPIPE, SIG_IGN);
  Pipe pipe = MakePipe().value();
  pipe.read.reset();
  EXPECT_EQ(WriteAll(pipe.write.get(), "x").code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace hvd
