#include "worker_runtime/timeline/recorder.h"

#include "absl/strings/str_cat.h"
#include "base/standing_clock_test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/timeline.pb.h"
#include "worker_runtime/timeline/chunk.h"
#include "worker_runtime/timeline/timeline_test_util.h"

namespace hvd::worker_runtime::timeline {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

class RecorderTest : public ::testing::Test {
 protected:
  pb::timeline::Chunk Take() {
    pb::timeline::Chunk chunk;
    EXPECT_TRUE(chunk.ParseFromString(recorder_.Take()));
    return chunk;
  }

  const absl::Time start_ = absl::FromUnixSeconds(1000);
  StandingClock clock_{start_};
  Recorder recorder_{clock_};
};

TEST_F(RecorderTest, EverythingWhileOff_RecordsNothing) {
  recorder_.Planned(0, recorder_.Queued(0, {TensorOf("a")}), 0, TensorOf("a"));
  recorder_.Operation(0, recorder_.Begin(), {TensorOf("a")});
  { ActivityScope scope(recorder_, 0, "", "COPY"); }
  recorder_.Cycle(0);
  EXPECT_TRUE(recorder_.IsEmpty());
  EXPECT_EQ(recorder_.NextDue(), absl::InfiniteFuture());
}

TEST_F(RecorderTest, Operation_BegunBeforeStart_IsNotRecorded) {
  const absl::Time began = recorder_.Begin();
  recorder_.Start({}, false);
  recorder_.Operation(0, began, {TensorOf("a")});
  EXPECT_TRUE(recorder_.IsEmpty());
}

TEST_F(RecorderTest, QueuedAndPlanned_BelongTogetherById) {
  recorder_.Start({}, false);
  const negotiation::SignaturePtr a = TensorOf("a"), b = TensorOf("b", {5});
  const Recorder::Submission request = recorder_.Queued(3, {a, b});
  clock_.Advance(absl::Milliseconds(2));
  recorder_.Planned(3, request, 1, b);
  const auto chunk = Take();
  ASSERT_THAT(chunk.events(), SizeIs(3));
  EXPECT_EQ(chunk.events(0).id(), request.first_id);
  EXPECT_EQ(chunk.events(1).id(), request.first_id + 1);
  EXPECT_EQ(chunk.events(2).id(), request.first_id + 1);
  EXPECT_EQ(chunk.events(2).kind(), static_cast<int>(EventKind::kPlanned));
  EXPECT_EQ(chunk.events(2).begin_ns() - chunk.events(1).begin_ns(), 2000000);
  EXPECT_EQ(chunk.events(1).process_set(), 3);
  EXPECT_THAT(chunk.events(1).shape(), ElementsAre(5));
  EXPECT_EQ(chunk.events(1).bytes(), 20);
}

TEST_F(RecorderTest, Planned_OfWhatWasQueuedBefore_RecordsBothFromTheStartOn) {
  recorder_.Start({}, false);
  const Recorder::Submission earlier = recorder_.Queued(0, {TensorOf("a"), TensorOf("b")});
  recorder_.Stop();
  const Recorder::Submission between = recorder_.Queued(0, {TensorOf("c")});
  clock_.Advance(absl::Seconds(1));
  recorder_.Start({}, false);
  clock_.Advance(absl::Seconds(1));
  recorder_.Planned(0, earlier, 1, TensorOf("b"));
  recorder_.Planned(0, between, 0, TensorOf("c"));
  const auto chunk = Take();
  ASSERT_THAT(chunk.events(), SizeIs(4));
  for (int i : {0, 2}) {
    EXPECT_EQ(chunk.events(i).kind(), static_cast<int>(EventKind::kQueued));
    EXPECT_EQ(chunk.events(i).id(), chunk.events(i + 1).id());
    EXPECT_EQ(chunk.events(i).begin_ns(), absl::ToUnixNanos(start_ + absl::Seconds(1)));
    EXPECT_EQ(chunk.events(i + 1).begin_ns(), absl::ToUnixNanos(start_ + absl::Seconds(2)));
  }
  EXPECT_NE(chunk.events(0).id(), chunk.events(2).id());
}

TEST_F(RecorderTest, ActivityScope_RecordsItsLife) {
  recorder_.Start({}, false);
  {
    ActivityScope scope(recorder_, 0, "BIG_", "COPY");
    clock_.Advance(absl::Microseconds(7));
  }
  const auto chunk = Take();
  ASSERT_THAT(chunk.events(), SizeIs(1));
  EXPECT_EQ(chunk.events(0).begin_ns(), absl::ToUnixNanos(start_));
  EXPECT_EQ(chunk.events(0).duration_ns(), 7000);
  EXPECT_EQ(chunk.texts(static_cast<int>(chunk.events(0).activity())), "BIG_COPY");
}

TEST_F(RecorderTest, Cycle_IsRecordedOnlyIfAskedFor) {
  recorder_.Start({}, false);
  recorder_.Cycle(0);
  EXPECT_TRUE(recorder_.IsEmpty());
  recorder_.Start({}, true);
  recorder_.Cycle(0);
  EXPECT_THAT(Take().events(), SizeIs(1));
}

TEST_F(RecorderTest, Stop_KeepsWhatWasRecorded) {
  recorder_.Start({}, false);
  recorder_.Queued(0, {TensorOf("a")});
  recorder_.Stop();
  recorder_.Queued(0, {TensorOf("b")});
  EXPECT_THAT(Take().events(), SizeIs(1));
}

TEST_F(RecorderTest, NextDue_OfFewEvents_IsASecondAfterTheOldest) {
  recorder_.Start({}, false);
  recorder_.Queued(0, {TensorOf("a")});
  clock_.Advance(absl::Milliseconds(300));
  recorder_.Queued(0, {TensorOf("b")});
  EXPECT_EQ(recorder_.NextDue(), start_ + Recorder::kOld);
}

TEST_F(RecorderTest, NextDue_WhereTheFileIsWritten_IsSoon) {
  recorder_.Start({}, false, Recorder::kOldAtTheWriter);
  recorder_.Queued(0, {TensorOf("a")});
  EXPECT_EQ(recorder_.NextDue(), start_ + Recorder::kOldAtTheWriter);
}

TEST_F(RecorderTest, NextDue_OfManyEvents_IsNow) {
  recorder_.Start({}, false);
  for (size_t i = 0; i < Recorder::kManyEvents; ++i) recorder_.Queued(0, {TensorOf("a")});
  EXPECT_LE(recorder_.NextDue(), clock_.Now());
}

TEST_F(RecorderTest, EventsWithoutRoom_AreCounted) {
  recorder_.Start({}, false);
  const std::vector<negotiation::SignaturePtr> many(1000, TensorOf("a"));
  for (size_t i = 0; i <= Recorder::kMostEvents; i += many.size()) recorder_.Queued(0, many);
  const uint64_t recorded = (Recorder::kMostEvents / many.size() + 1) * many.size();
  EXPECT_EQ(Take().dropped(), recorded - Recorder::kMostEvents);
  EXPECT_EQ(Take().dropped(), 0u);
}

TEST_F(RecorderTest, Take_OfLongNames_GivesChunksOfBoundedSize) {
  recorder_.Start({}, false);
  constexpr int kEvents = 1000;
  for (int i = 0; i < kEvents; ++i) {
    recorder_.Queued(0, {TensorOf(absl::StrCat(std::string(1000, 'x'), i))});
  }
  int events = 0, chunks = 0;
  while (!recorder_.IsEmpty()) {
    const std::string bytes = recorder_.Take();
    EXPECT_LT(bytes.size(), kChunkBytes + 2000);
    pb::timeline::Chunk chunk;
    ASSERT_TRUE(chunk.ParseFromString(bytes));
    events += chunk.events_size();
    ++chunks;
  }
  EXPECT_EQ(events, kEvents);
  EXPECT_GT(chunks, 3);
}

TEST_F(RecorderTest, Take_OfManyTensorsInOne_NamesTheFirstAndCountsAll) {
  recorder_.Start({}, false);
  std::vector<negotiation::SignaturePtr> tensors;
  for (int i = 0; i < 200; ++i) tensors.push_back(TensorOf(absl::StrCat("t", i), {1}));
  recorder_.Operation(0, recorder_.Begin(), tensors);
  const auto chunk = Take();
  EXPECT_EQ(chunk.events(0).tensor_count(), 200u);
  EXPECT_EQ(chunk.events(0).bytes(), 800);
  EXPECT_THAT(chunk.events(0).names(), SizeIs(kMostNames));
}

}  // namespace
}  // namespace hvd::worker_runtime::timeline
