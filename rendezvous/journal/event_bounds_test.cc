#include "rendezvous/journal/event_bounds.h"

#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "base/text/shortened.h"
#include "gtest/gtest.h"
#include "rendezvous/journal/event_codec.h"

namespace hvd::rendezvous::journal {
namespace {

const std::string kLong(2000000, 'x');
const membership::WorkerKey kWorker{WorkerId(3), Incarnation(4)};

size_t Size(const membership::Event& event) {
  return ToMessage(event, absl::UnixEpoch()).ByteSizeLong();
}

// Everything that an agent or a worker may say in words.
TEST(EventBoundsTest, Texts_AreShortened) {
  const std::vector<std::string> lines(1000, std::string(10000, 'x'));
  for (membership::Event event : std::vector<membership::Event>{
           membership::HostLost{"h1", Incarnation(9), kLong},
           membership::HostDraining{"h1", absl::Seconds(1), kLong},
           membership::WorkerExited{WorkerId(3), 5, 0, false, false, lines, kLong, kLong, kLong},
           membership::JoinRequested{membership::CallId(8), kWorker, Epoch(2), "10.0.0.1", 4711,
                                     true, 12, true, kLong},
           membership::Reported{membership::CallId(8), kWorker, Epoch(2), false, kLong},
           membership::StallReported{membership::CallId(8),
                                     kWorker,
                                     Epoch(2),
                                     absl::Seconds(60),
                                     true,
                                     {{kLong, {1, 2}}, {kLong, {3}}}},
           membership::WorkerSampled{WorkerId(3), kLong, lines},
           membership::StopRequested{kLong, 130, absl::Seconds(1)},
       }) {
    EXPECT_TRUE(Bound(event).ok()) << event.index();
    EXPECT_LT(Size(event), (kMostLines + 4) * (text::kLongestText + 100)) << event.index();
    EXPECT_GT(Size(event), text::kLongestText) << event.index();
  }
}

TEST(EventBoundsTest, ShortEvent_IsUnchanged) {
  membership::Event event = membership::Reported{membership::CallId(8), kWorker, Epoch(2), false,
                                                 "ValueError: bad",     true};
  const std::string before = ToMessage(event, absl::UnixEpoch()).SerializeAsString();
  ASSERT_TRUE(Bound(event).ok());
  EXPECT_EQ(ToMessage(event, absl::UnixEpoch()).SerializeAsString(), before);
}

TEST(EventBoundsTest, LargestValueOfAnExchange_IsRecordable) {
  membership::Event event = membership::ExchangeRequested{membership::CallId(8), kWorker, Epoch(2),
                                                          "key", std::string(1 << 20, 'v')};
  EXPECT_TRUE(Bound(event).ok());
  EXPECT_GT(Size(event), size_t{1} << 20);
}

TEST(EventBoundsTest, LongNames_AreRefused_NotShortened) {
  for (membership::Event event : std::vector<membership::Event>{
           membership::ExchangeRequested{membership::CallId(8), kWorker, Epoch(2), kLong, "v"},
           membership::JoinRequested{membership::CallId(8), kWorker, Epoch(2), kLong},
           membership::HostJoined{{"h1", 1, kLong}, Incarnation(1)},
       }) {
    const absl::Status status = Bound(event);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << event.index();
    EXPECT_NE(status.message().find("more than 4096 bytes"), std::string::npos) << status;
  }
}

TEST(EventBoundsTest, ManySmallParts_AreRefused) {
  membership::StallReported stall{
      membership::CallId(8), kWorker, Epoch(2),
      absl::Seconds(60),     true,    std::vector<membership::StalledOperations>(1000, {"a", {}})};
  for (auto& each : stall.waiting) each.missing.assign(1000, 1);
  membership::Event event = stall;
  EXPECT_EQ(Bound(event).code(), absl::StatusCode::kInvalidArgument);
}

// Numbers beyond the range of a snapshot would make it unreadable.
TEST(EventBoundsTest, Numbers_AreWithinTheRangeOfASnapshot) {
  membership::WorkerExited exited;
  exited.exit_code = std::numeric_limits<int>::min();
  membership::Event event = exited;
  ASSERT_TRUE(Bound(event).ok());
  EXPECT_EQ(std::get<membership::WorkerExited>(event).exit_code, -(1 << 30));
  event = membership::JoinRequested{membership::CallId(8), kWorker, Epoch(2), "10.0.0.1",
                                    std::numeric_limits<int>::max()};
  ASSERT_TRUE(Bound(event).ok());
  EXPECT_EQ(std::get<membership::JoinRequested>(event).port, 1 << 30);
}

}  // namespace
}  // namespace hvd::rendezvous::journal
