#include "base/cancellation.h"

#include <poll.h>

#include <thread>

#include "gtest/gtest.h"

namespace hvd {
namespace {

TEST(CancellationTest, Cancel_EndsAPollAndKeepsTheFirstReason) {
  Cancellation cancellation;
  pollfd poll_fd{cancellation.fd(), POLLIN, 0};
  EXPECT_EQ(poll(&poll_fd, 1, 0), 0);
  EXPECT_TRUE(cancellation.status().ok());
  std::thread other([&] { cancellation.Cancel(absl::AbortedError("first")); });
  EXPECT_EQ(poll(&poll_fd, 1, -1), 1);
  other.join();
  cancellation.Cancel(absl::AbortedError("second"));
  EXPECT_EQ(cancellation.status(), absl::AbortedError("first"));
  EXPECT_EQ(poll(&poll_fd, 1, -1), 1);  // stays readable
}

}  // namespace
}  // namespace hvd
