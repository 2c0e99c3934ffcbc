#include "worker_runtime/negotiation/message_sizes.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker_runtime/negotiation/message_codec.h"
#include "worker_runtime/negotiation/signature_test_util.h"

namespace hvd::worker_runtime::negotiation {
namespace {

using testing::HasSubstr;

std::string Long(char c, size_t bytes) { return std::string(bytes, c); }

TEST(MessageSizesTest, WireBytes_AreEnough) {
  TensorSignature signature = MakeSignature("name", {int64_t{1} << 40, 1}, OpKind::kAllToAll);
  signature.splits.assign(100, 2147483647);
  signature.prescale = signature.postscale = 0.1;
  Announcement announcement;
  announcement.groups = {{AnnouncedTensor{kNoSignatureId, Share(signature)}}};
  EXPECT_LE(Encode(announcement).size(), WireBytes(signature));
  PlannedTensor tensor = Planned(Share(signature), ~SignatureId{0});
  tensor.received_splits.assign(100, 2147483647);
  tensor.senders.assign(100, tensor.signature);
  tensor.absent_ranks.assign(50, 2147483647);
  Plan plan;
  plan.batches = {{tensor}};
  EXPECT_LE(Encode(plan, 1).size(), WireBytes(tensor));
  Failure failure{{"a", Long('b', 300)}, Long('m', 1000)};
  plan.batches = {};
  plan.failures = {failure};
  EXPECT_LE(Encode(plan, 1).size(), WireBytes(failure));
}

TEST(MessageSizesTest, CheckSize_AGroupCountsAsAWhole) {
  const SignaturePtr large = Sig(Long('a', kMostOperationBytes / 3));
  EXPECT_EQ(CheckSize({large, large}), absl::OkStatus());
  const absl::Status refused = CheckSize({large, large, large});
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("an operation of 3 tensors takes 67109181 bytes to announce (names, shapes "
                        "and splits); the limit is 67108864"));
}

TEST(MessageSizesTest, Split_BetweenGroups) {
  Announcement whole;
  whole.seen_sequence = 7;
  whole.blocked_on = {"x"};
  whole.world_is_changing = true;
  whole.end.emplace(EpochEnd{1, absl::AbortedError("left"), EndKind::kLeft});
  for (char c : {'a', 'b', 'c', 'd', 'e'}) {
    const AnnouncedTensor tensor{kNoSignatureId, Sig(Long(c, kGoodMessageBytes / 4 + 1))};
    whole.groups.push_back({tensor, tensor});
  }
  const std::vector<Announcement> parts = Split(whole);
  ASSERT_EQ(parts.size(), 3u);
  std::string order;
  for (const Announcement& part : parts) {
    EXPECT_EQ(part.seen_sequence, 7u);
    const bool last = &part == &parts.back();
    EXPECT_EQ(part.end.has_value(), last);
    EXPECT_EQ(part.world_is_changing, last);
    EXPECT_EQ(part.blocked_on.empty(), !last);
    for (const auto& group : part.groups) {
      ASSERT_EQ(group.size(), 2u);
      order += group[0].signature->name[0];
    }
    order += ' ';
  }
  EXPECT_EQ(order, "ab cd e ");
  EXPECT_EQ(Split(Announcement()).size(), 1u);
}

}  // namespace
}  // namespace hvd::worker_runtime::negotiation
