#include "agent/agent_input.h"

#include <memory>
#include <string>

#include "base/fd.h"
#include "gtest/gtest.h"

namespace hvd::agent {
namespace {

class AgentInputTest : public testing::Test {
 protected:
  // Feeds the bytes and the end of the stream; returns the callbacks in order, "unreadable" or the
  // host of a bootstrap.
  std::string Feed(const std::string& bytes) {
    Pipe pipe = MakePipe().value();
    std::unique_ptr<EventLoop> loop = EventLoop::Create().value();
    std::string seen;
    AgentInput input(*loop, pipe.read.get(),
                     {[&](const pb::AgentBootstrap& bootstrap) { seen += bootstrap.host() + ";"; },
                      [&] {
                        seen += "end";
                        loop->Stop();
                      },
                      [&](const absl::Status&) {
                        seen += "unreadable";
                        loop->Stop();
                      }});
    EXPECT_TRUE(WriteAll(pipe.write.get(), bytes).ok());
    pipe.write.reset();
    loop->Run();
    return seen;
  }

  static std::string Bootstrap() {
    pb::AgentBootstrap bootstrap;
    bootstrap.set_host("node7");
    return net::EncodeFrame(bootstrap.SerializeAsString());
  }
};

TEST_F(AgentInputTest, Input_BootstrapThenEnd_GivesBoth) {
  EXPECT_EQ(Feed(Bootstrap()), "node7;end");
}

TEST_F(AgentInputTest, Input_MoreAfterBootstrap_IsIgnored) {
  EXPECT_EQ(Feed(Bootstrap() + Bootstrap() + "noise"), "node7;end");
}

TEST_F(AgentInputTest, Input_EndInsideBootstrap_IsTheEnd) {
  EXPECT_EQ(Feed(Bootstrap().substr(0, 5)), "end");
  EXPECT_EQ(Feed(""), "end");
}

TEST_F(AgentInputTest, Input_Garbage_IsUnreadable) {
  EXPECT_EQ(Feed("GET / HTTP/1.1\r\n\r\n"), "unreadable");
  EXPECT_EQ(Feed(net::EncodeFrame("\xff\xff\xff")), "unreadable");
}

}  // namespace
}  // namespace hvd::agent
