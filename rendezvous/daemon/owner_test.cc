#include "rendezvous/daemon/owner.h"

#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::rendezvous::daemon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class OwnerTest : public testing::Test {
 protected:
  void SetUp() override {
    loop_ = *EventLoop::Create();
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    theirs_.reset(ends[0]);
    owner_ = *Owner::Open(*loop_, ends[1]);
  }

  void Say(const std::string& text) { ASSERT_TRUE(WriteAll(theirs_.get(), text).ok()); }

  std::unique_ptr<EventLoop> loop_;
  Fd theirs_;
  std::unique_ptr<Owner> owner_;
};

TEST_F(OwnerTest, GetsTheCredentialsInOneLine) {
  PersistentJob job;
  job.hosts = {"t", "CA", "member's", "k"};
  job.daemon = {"t", "CA", "server's", "k2"};
  ASSERT_TRUE(owner_->Tell(job, {"127.0.0.1:1", "[::1]:2"}).ok());
  std::string text(1024, '\0');
  text.resize(static_cast<size_t>(read(theirs_.get(), text.data(), text.size())));
  EXPECT_EQ(text.find('\n'), text.size() - 1);
  EXPECT_THAT(text, HasSubstr("{\"addresses\":[\"127.0.0.1:1\",\"[::1]:2\"],\"credentials\":"));
  EXPECT_THAT(text,
              HasSubstr("\"server\":{\"ca\":\"CA\",\"certificate\":\"server's\",\"key\":\"k2\"}"));
  EXPECT_THAT(text,
              HasSubstr("\"member\":{\"ca\":\"CA\",\"certificate\":\"member's\",\"key\":\"k\"}"));
}

TEST_F(OwnerTest, ItsLinesAndItsEndAreHeard) {
  std::vector<std::string> drained;
  ASSERT_TRUE(owner_
                  ->Watch({[&](const std::string& host) {
                             drained.push_back(host);
                             if (drained.size() == 2) theirs_.reset();
                           },
                           [&] { loop_->Stop(); }})
                  .ok());
  Say("drain a\nnonsense\ndrain ");
  Say("b/2\nunfinished");
  loop_->Run();
  EXPECT_THAT(drained, ElementsAre("a", "b/2"));
}

TEST(OwnerOpenTest, NonUnixSocketIsRefused) {
  const auto loop = *EventLoop::Create();
  const auto owner = Owner::Open(*loop, 1 << 19);
  EXPECT_EQ(owner.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(owner.status().message()), HasSubstr("--owner: 524288"));
}

}  // namespace
}  // namespace hvd::rendezvous::daemon
