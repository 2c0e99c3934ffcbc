// Tests of the coordinator with many tensors at once, and with large worlds.
#include <utility>

#include "gtest/gtest.h"
#include "worker_runtime/negotiation/coordinator.h"
#include "worker_runtime/negotiation/message_codec.h"
#include "worker_runtime/negotiation/message_sizes.h"
#include "worker_runtime/negotiation/signature_test_util.h"

namespace hvd::worker_runtime::negotiation {
namespace {

const absl::Time kNow = absl::UnixEpoch();

CoordinatorOptions Options(int size) {
  CoordinatorOptions options;
  options.size = size;
  options.settings.fusion_threshold_bytes = 1024;
  options.settings.cache_capacity = 0;
  return options;
}

Announcement Submission(TensorSignature signature) {
  Announcement announcement;
  announcement.groups = {{AnnouncedTensor{kNoSignatureId, Share(std::move(signature))}}};
  return announcement;
}

// The plan of an all-to-all that a rank receives grows linearly with the world's size.
TEST(CoordinatorSizesTest, AllToAllOf10000Ranks) {
  constexpr int kRanks = 10000;
  Coordinator coordinator(Options(kRanks));
  TensorSignature signature = MakeSignature("t", {3 * kRanks}, OpKind::kAllToAll);
  signature.splits.assign(kRanks, 3);
  const Announcement announcement = Submission(std::move(signature));
  for (int rank = 0; rank < kRanks; ++rank) {
    ASSERT_TRUE(coordinator.Announce(rank, announcement, kNow).ok());
  }
  const auto plan = coordinator.NextPlan(kNow);
  ASSERT_TRUE(plan.has_value());
  for (int rank : {1, kRanks - 1}) {
    const std::string bytes = Encode(*plan, rank);
    EXPECT_LE(bytes.size(), size_t{4} * kRanks);
    const auto decoded = DecodePlan(bytes, kRanks, KnownSignatures());
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(decoded->batches[0][0].received_splits, std::vector<int32_t>(kRanks, 3));
  }
}

TEST(CoordinatorSizesTest, MoreThanAPlanShouldHold_GoesOnInTheNext) {
  CoordinatorOptions options = Options(2);
  options.settings.cycle_time = absl::Milliseconds(5);
  Coordinator coordinator(options);
  std::string all, planned;
  for (char c = 'a'; c < 'g'; ++c) {
    for (int rank : {0, 1}) {
      const auto announcement = Submission(MakeSignature(std::string(kGoodMessageBytes / 2, c)));
      ASSERT_TRUE(coordinator.Announce(rank, announcement, kNow).ok());
    }
    all += c;
  }
  Announcement leave;
  leave.end.emplace(EpochEnd{1, absl::AbortedError("left"), EndKind::kLeft});
  ASSERT_TRUE(coordinator.Announce(1, leave, kNow).ok());
  bool ended = false;
  for (int plans = 0; !ended; ++plans) {
    ASSERT_LT(plans, 10);
    const auto plan = coordinator.NextPlan(kNow + options.settings.cycle_time);
    ASSERT_TRUE(plan.has_value()) << "the rest does not wait";
    EXPECT_LT(Encode(*plan, 1).size(), 2 * kGoodMessageBytes);
    for (const Batch& batch : plan->batches) {
      for (const PlannedTensor& tensor : batch) planned += tensor.signature->name[0];
    }
    ended = plan->end.has_value();
  }
  EXPECT_EQ(planned, all);
}

TEST(CoordinatorSizesTest, ManyFailures_AreSplitIntoSeveralPlans) {
  Coordinator coordinator(Options(2));
  for (char c = 'a'; c < 'e'; ++c) {
    for (int rank : {0, 1}) {
      const auto announcement =
          Submission(MakeSignature(std::string(kGoodMessageBytes / 2, c), {rank + 1}));
      ASSERT_TRUE(coordinator.Announce(rank, announcement, kNow).ok());
    }
  }
  std::string failed;
  while (const auto plan = coordinator.NextPlan(kNow)) {
    EXPECT_EQ(plan->failures.size(), 1u) << "name and message are as long as is good for a plan";
    for (const Failure& failure : plan->failures) failed += failure.names[0][0];
    if (failed.size() < 4) {
      EXPECT_EQ(coordinator.NextDeadline(), absl::InfinitePast());
    }
  }
  EXPECT_EQ(failed, "abcd");
}

}  // namespace
}  // namespace hvd::worker_runtime::negotiation
