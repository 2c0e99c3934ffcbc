#include "launcher/job/job_events.h"

#include <cerrno>
#include <thread>

#include "gtest/gtest.h"

namespace hvd::launcher::job {
namespace {

TEST(JobEventQueue, KeepsOrder) {
  JobEventQueue queue;
  queue.Post(AgentIsReady{1, ""});
  queue.Post(StopSignal{2});
  EXPECT_EQ(std::get<AgentIsReady>(*queue.Next(absl::InfiniteFuture())).agent, 1u);
  EXPECT_EQ(std::get<StopSignal>(*queue.Next(absl::InfiniteFuture())).signal, 2);
}

TEST(JobEventQueue, PassedDeadlineReturnsNothing) {
  JobEventQueue queue;
  EXPECT_FALSE(queue.Next(absl::InfinitePast()).has_value());
  queue.Post(OutputIsBroken{false, EPIPE});
  EXPECT_TRUE(queue.Next(absl::InfinitePast()).has_value());
}

TEST(JobEventQueue, WakesTheWaiter) {
  JobEventQueue queue;
  std::thread poster([&] { queue.Post(OutputIsDrained{}); });
  EXPECT_TRUE(std::holds_alternative<OutputIsDrained>(*queue.Next(absl::InfiniteFuture())));
  poster.join();
}

}  // namespace
}  // namespace hvd::launcher::job
