#include "base/net/descriptor_passing.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "gtest/gtest.h"

namespace hvd::net {
namespace {

class DescriptorPassingTest : public testing::Test {
 protected:
  DescriptorPassingTest() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    here_.reset(ends[0]);
    there_.reset(ends[1]);
  }

  Fd here_, there_;
  char buffer_[64];
  std::vector<Fd> received_;
};

TEST_F(DescriptorPassingTest, Message_ArrivesWithItsDescriptorsInOrder) {
  absl::StatusOr<Pipe> pipe = MakePipe();
  ASSERT_TRUE(pipe.ok());
  ASSERT_EQ(SendWithDescriptors(here_.get(), "two", {pipe->read.get(), pipe->write.get()}),
            absl::OkStatus());
  const auto got = ReceiveWithDescriptors(there_.get(), buffer_, sizeof(buffer_), received_);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(std::string(buffer_, *got), "two");
  ASSERT_EQ(received_.size(), 2u);
  ASSERT_EQ(write(received_[1].get(), "x", 1), 1);
  char byte = 0;
  ASSERT_EQ(read(received_[0].get(), &byte, 1), 1);
  EXPECT_EQ(byte, 'x');
  EXPECT_NE(fcntl(received_[0].get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(DescriptorPassingTest, Message_WithoutDescriptors) {
  ASSERT_EQ(SendWithDescriptors(here_.get(), "none", {}), absl::OkStatus());
  const auto got = ReceiveWithDescriptors(there_.get(), buffer_, sizeof(buffer_), received_);
  EXPECT_EQ(got.value_or(0), 4u);
  EXPECT_TRUE(received_.empty());
}

TEST_F(DescriptorPassingTest, Receive_EndAndNothing) {
  EXPECT_EQ(
      ReceiveWithDescriptors(there_.get(), buffer_, sizeof(buffer_), received_).status().code(),
      absl::StatusCode::kUnavailable);
  here_.reset();
  EXPECT_EQ(ReceiveWithDescriptors(there_.get(), buffer_, sizeof(buffer_), received_).value_or(1),
            0u);
}

TEST_F(DescriptorPassingTest, Send_ToNobodyOrTooMany) {
  EXPECT_EQ(SendWithDescriptors(here_.get(), "x", std::vector<int>(254, here_.get())).code(),
            absl::StatusCode::kInvalidArgument);
  there_.reset();
  EXPECT_EQ(SendWithDescriptors(here_.get(), "x", {}).code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace hvd::net
