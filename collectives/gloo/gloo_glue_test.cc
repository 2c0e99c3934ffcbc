#include "collectives/gloo/gloo_glue.h"

#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>

#include "gloo/common/error.h"
#include "gloo/common/logging.h"
#include "gtest/gtest.h"

namespace hvd::collectives::gloo {
namespace {

TEST(GlooCallTest, Exceptions_BecomeTheStatusTheyMean) {
  EXPECT_TRUE(GlooCall([] {}).ok());
  const absl::Status io = GlooCall([] { throw ::gloo::IoException("peer closed"); });
  EXPECT_EQ(io.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(io.message(), "peer closed");
  const absl::Status enforce = GlooCall([] { GLOO_ENFORCE(false, "why"); });
  EXPECT_EQ(enforce.code(), absl::StatusCode::kInternal);
  const absl::Status other = GlooCall([] { throw std::bad_alloc(); });
  EXPECT_EQ(other.code(), absl::StatusCode::kInternal);
}

TEST(GlooTimeoutTest, NeverZeroNeverOverflows) {
  EXPECT_EQ(GlooTimeout(-absl::Seconds(1)).count(), 1);
  EXPECT_EQ(GlooTimeout(absl::ZeroDuration()).count(), 1);
  EXPECT_GE(GlooTimeout(absl::Milliseconds(20)).count(), 20);
  const std::chrono::nanoseconds longest = GlooTimeout(absl::InfiniteDuration());
  EXPECT_GT(longest.count(), 0);
}

// Dies of SIGPIPE if the guard does nothing, or if it delivers the signal late.
TEST(ScopedSigpipeBlockTest, WriteToAClosedSocket_IsAnErrorAndNoSignal) {
  ASSERT_EQ(std::signal(SIGPIPE, SIG_DFL), SIG_DFL);
  int fds[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
  close(fds[1]);
  {
    ScopedSigpipeBlock block;
    EXPECT_EQ(write(fds[0], "x", 1), -1);
    EXPECT_EQ(errno, EPIPE);
  }
  close(fds[0]);
}

}  // namespace
}  // namespace hvd::collectives::gloo
