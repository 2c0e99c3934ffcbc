#include "launcher/job/agent_fleet.h"

#include <fcntl.h>
#include <unistd.h>

#include "gtest/gtest.h"
#include "launcher/job/testing/fake_agents.h"

namespace hvd::launcher::job {
namespace {

class AgentFleetTest : public ::testing::Test {
 protected:
  AgentFleetTest() {
    for (const char* host : {"a", "b"}) {
      spawn::AgentTarget target;
      target.host = host;
      EXPECT_TRUE(fleet_.Start(target, {}).ok());
    }
  }
  template <typename Event>
  Event Next() {
    return std::get<Event>(*events_.Next(absl::InfinitePast()));
  }

  JobEventQueue events_;
  console::OutputSink output_{console::OutputSinkOptions{}};
  FakeAgents agents_;
  RankFilter filter_{plan::RankRanges()};
  AgentFleet fleet_{agents_.Starter(), events_, output_, filter_};
};

TEST_F(AgentFleetTest, CallbacksBecomeEventsOfTheRightAgent) {
  agents_["b"].callbacks.on_ready("");
  agents_["a"].callbacks.on_refusal("no");
  agents_.Exit("b", {3, 0, "said"});
  EXPECT_EQ(Next<AgentIsReady>().agent, 1u);
  const auto refused = Next<AgentHasRefused>();
  EXPECT_EQ(refused.agent, 0u);
  EXPECT_EQ(refused.message, "no");
  const auto exited = Next<AgentHasExited>();
  EXPECT_EQ(exited.agent, 1u);
  EXPECT_EQ(exited.exit.exit_code, 3);
}

TEST_F(AgentFleetTest, KeepsStateAndHostOfEachAgent) {
  fleet_.MarkReady(1);
  EXPECT_TRUE(fleet_.ready(1));
  EXPECT_FALSE(fleet_.ready(0));
  fleet_.MarkExited(0);
  EXPECT_FALSE(fleet_.AllExited());
  EXPECT_FALSE(fleet_.ready(0)) << "it never was";
  fleet_.MarkExited(1);
  EXPECT_TRUE(fleet_.AllExited());
  EXPECT_TRUE(fleet_.ready(1)) << "it was";
  EXPECT_EQ(fleet_.target(1).host, "b");
}

TEST_F(AgentFleetTest, ReachesAllAgents) {
  agents_["a"].stubborn = true;
  fleet_.CloseAllInputs();
  EXPECT_TRUE(agents_["a"].input_closed && agents_["b"].input_closed);
  EXPECT_FALSE(agents_["a"].exited);
  fleet_.KillAll();
  EXPECT_TRUE(agents_["a"].killed);
  EXPECT_FALSE(agents_["b"].killed);
}

TEST_F(AgentFleetTest, FailedStartAddsNoAgent) {
  agents_.FailOn("c", absl::NotFoundError("no ssh"));
  spawn::AgentTarget target;
  target.host = "c";
  EXPECT_EQ(fleet_.Start(target, {}).status().message(), "no ssh");
  EXPECT_EQ(fleet_.agents(), (std::vector<size_t>{0, 1}));
}

TEST_F(AgentFleetTest, ForgottenAgentsNumberIsNotUsedAgain) {
  agents_.Exit("a");
  fleet_.Forget(0);
  EXPECT_EQ(fleet_.agents(), (std::vector<size_t>{1}));
  spawn::AgentTarget target;
  target.host = "a";
  EXPECT_EQ(*fleet_.Start(target, {}), 2u);
  EXPECT_EQ(fleet_.target(2).host, "a");
}

TEST(DescribeExit, SaysHowAndWhatItSaid) {
  EXPECT_EQ(DescribeExit({255, 0, ""}), "exit code 255");
  EXPECT_EQ(DescribeExit({0, 9, ""}), "killed by signal 9 (Killed)");
  EXPECT_EQ(DescribeExit({1, 0, "one\r\ntwo\n"}), "exit code 1; it said: one | two");
}

}  // namespace
}  // namespace hvd::launcher::job
