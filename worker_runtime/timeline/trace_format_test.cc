#include "worker_runtime/timeline/trace_format.h"

#include <deque>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker_runtime/timeline/chunk.h"
#include "worker_runtime/timeline/timeline_test_util.h"

namespace hvd::worker_runtime::timeline {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Pair;
using ::testing::SizeIs;

const absl::Time kOrigin = absl::FromUnixSeconds(500);

TimelineEvent EventOf(EventKind kind, absl::Duration since_origin) {
  TimelineEvent event;
  event.kind = kind;
  event.begin = kOrigin + since_origin;
  return event;
}

std::string ChunkOf(std::deque<TimelineEvent> events, ClockOffset clock = {},
                    uint64_t dropped = 0) {
  return EncodeChunk(events, clock, dropped);
}

class TraceFormatTest : public ::testing::Test {
 protected:
  // All events of the trace after `chunk` has come from `rank`, without those about the format.
  std::vector<std::map<std::string, std::string>> EventsWith(int rank, const std::string& chunk) {
    absl::StatusOr<std::string> text = format_.Add(rank, chunk);
    EXPECT_TRUE(text.ok()) << text.status();
    text_ += text.value_or("");
    std::vector<std::map<std::string, std::string>> events;
    for (auto& event : ParseTrace(text_ + format_.End())) {
      if (event["ph"] != "M" && event["name"] != "TIMELINE_START") events.push_back(event);
    }
    return events;
  }

  TraceFormat format_{{"alpha", "beta"}, kOrigin};
  std::string text_ = format_.Begin();
};

TEST_F(TraceFormatTest, Begin_NamesTheRanksAndTheirHosts) {
  const auto events = ParseTrace(text_ + format_.End());
  EXPECT_THAT(events, Contains(IsSupersetOf({Pair("name", "process_name"), Pair("pid", "1"),
                                             Pair("args", "{\"name\":\"rank 1 (beta)\"}")})));
  EXPECT_THAT(text_, HasSubstr("\"name\":\"rank 0 (alpha)\","
                               "\"start_time_since_epoch_in_micros\":500000000}"));
}

TEST_F(TraceFormatTest, QueuedAndPlanned_AreTheEndsOfOneAsynchronousEvent) {
  TimelineEvent queued = EventOf(EventKind::kQueued, absl::Microseconds(1500));
  queued.id = 26;
  queued.tensors = {TensorOf("grad \"x\"\n", {4, 5}, negotiation::OpKind::kAllGather)};
  TimelineEvent planned = queued;
  planned.kind = EventKind::kPlanned;
  planned.begin += absl::Nanoseconds(2500);
  const auto events = EventsWith(1, ChunkOf({queued, planned}));
  ASSERT_THAT(events, SizeIs(2));
  for (const auto& event : events) {
    EXPECT_EQ(event.at("name"), "NEGOTIATE_ALLGATHER");
    EXPECT_EQ(event.at("id2"), "{\"local\":\"0x1a\"}");
    EXPECT_EQ(event.at("pid"), "1");
  }
  EXPECT_EQ(events[0].at("ph"), "b");
  EXPECT_EQ(events[1].at("ph"), "e");
  EXPECT_EQ(events[0].at("ts"), "1500.000");
  EXPECT_EQ(events[1].at("ts"), "1502.500");
  EXPECT_THAT(events[0].at("args"), HasSubstr("\"tensor\":\"grad \\\"x\\\"\\u000a\""));
  EXPECT_THAT(events[0].at("args"), HasSubstr("\"shape\":\"[4, 5]\""));
}

TEST_F(TraceFormatTest, AnOperation_TellsWhatItCarried) {
  TimelineEvent operation = EventOf(EventKind::kOperation, absl::Microseconds(10));
  operation.duration = absl::Microseconds(5);
  operation.tensors = {TensorOf("a", {2}), TensorOf("b", {3})};
  const auto events = EventsWith(0, ChunkOf({operation}));
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].at("ph"), "X");
  EXPECT_EQ(events[0].at("name"), "ALLREDUCE");
  EXPECT_EQ(events[0].at("dur"), "5.000");
  for (const char* part : {"\"bytes\":20", "\"dtype\":\"float32\"", "\"names\":[\"a\",\"b\"]",
                           "\"reduction\":\"sum\"", "\"tensors\":2"}) {
    EXPECT_THAT(events[0].at("args"), HasSubstr(part));
  }
}

TEST_F(TraceFormatTest, ProcessSets_HaveThreadsOfTheirOwn) {
  TimelineEvent world = EventOf(EventKind::kActivity, absl::ZeroDuration());
  world.activity = "GLOO_ALLREDUCE";
  TimelineEvent set = world;
  set.process_set = 2;
  const auto events = EventsWith(0, ChunkOf({world, set}));
  ASSERT_THAT(events, SizeIs(2));
  EXPECT_NE(events[0].at("tid"), events[1].at("tid"));
  EXPECT_THAT(text_, HasSubstr("operations of process set 2"));
}

TEST_F(TraceFormatTest, Times_AreRankZerosTimes) {
  const ClockOffset behind{absl::Seconds(3), absl::Microseconds(40)};
  const auto events =
      EventsWith(1, ChunkOf({EventOf(EventKind::kCycle, absl::Milliseconds(1))}, behind));
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].at("ts"), "3001000.000");
  EXPECT_THAT(text_, HasSubstr("\"clock_offset_us\":3000000.000,\"clock_uncertainty_us\":40.000"));
}

TEST_F(TraceFormatTest, DroppedEvents_AreCountedInTheTrace) {
  const auto events =
      EventsWith(1, ChunkOf({EventOf(EventKind::kCycle, absl::ZeroDuration())}, {}, 12));
  EXPECT_THAT(
      events,
      Contains(IsSupersetOf({Pair("name", "EVENTS_DROPPED"), Pair("args", "{\"count\":12}")})));
}

TEST_F(TraceFormatTest, Add_OfNonsense_Fails) {
  EXPECT_EQ(format_.Add(0, "nonsense").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(format_.Add(7, ChunkOf({})).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace hvd::worker_runtime::timeline
