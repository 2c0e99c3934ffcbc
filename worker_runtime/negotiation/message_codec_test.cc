#include "worker_runtime/negotiation/message_codec.h"

#include "gtest/gtest.h"
#include "worker_runtime/negotiation/signature_test_util.h"

namespace hvd::worker_runtime::negotiation {
namespace {

TensorSignature Rich() {
  TensorSignature signature =
      MakeSignature("x", {4, 3}, OpKind::kAllToAll, collectives::DataType::kBfloat16);
  signature.reduction = Reduction::kMin;
  signature.prescale = 0.5;
  signature.postscale = 3;
  signature.root_rank = 1;
  signature.splits = {3, 1};
  signature.on_device = true;
  signature.meaning = "gather to rank 1";
  return signature;
}

TEST(WireTest, Announcement_ComesBackAsItWas) {
  Announcement sent;
  sent.seen_sequence = 9;
  sent.groups = {{AnnouncedTensor{7, nullptr}, AnnouncedTensor{kNoSignatureId, Share(Rich())}}};
  sent.blocked_on = {"x", "y"};
  sent.world_is_changing = true;
  sent.end = EpochEnd{1, absl::UnavailableError("gone"), EndKind::kCollectiveFailed};
  const auto got = DecodeAnnouncement(Encode(sent), 2);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->seen_sequence, 9u);
  ASSERT_EQ(got->groups.size(), 1u);
  EXPECT_EQ(got->groups[0][0].known_id, 7u);
  EXPECT_EQ(*got->groups[0][1].signature, Rich());
  EXPECT_EQ(got->blocked_on, sent.blocked_on);
  EXPECT_TRUE(got->world_is_changing);
  EXPECT_EQ(got->end->rank, 1);
  EXPECT_EQ(got->end->status, sent.end->status);
  EXPECT_EQ(got->end->kind, EndKind::kCollectiveFailed);
}

TEST(WireTest, Plan_ComesBackWithSignatures) {
  KnownSignatures known;
  Plan first;
  first.batches = {{Planned(Sig("a"), 5)}};
  known.Apply(first);
  Plan sent;
  sent.sequence = 2;
  sent.batches = {{Planned(Sig("a")), Planned(Share(Rich()), 6)}};
  sent.batches[0][0].known_id = 5;
  sent.batches[0][0].absent_ranks = {1};
  sent.batches[0][0].world_is_changing = true;
  TensorSignature even = Rich();
  even.splits.clear();
  sent.batches[0][1].senders = {Share(Rich()), Share(even)};
  sent.batches[0][1].moves_nothing = true;
  sent.failures = {Failure{{"f"}, "why"}};
  sent.evicted_ids = {5};
  const auto got = DecodePlan(Encode(sent, 1), 2, known);
  ASSERT_TRUE(got.ok()) << got.status();
  ASSERT_EQ(got->batches[0].size(), 2u);
  EXPECT_EQ(got->batches[0][0].signature->name, "a");
  EXPECT_EQ(got->batches[0][0].absent_ranks, std::vector<int>{1});
  EXPECT_TRUE(got->batches[0][0].world_is_changing);
  EXPECT_FALSE(got->batches[0][1].world_is_changing);
  EXPECT_EQ(*got->batches[0][1].signature, Rich());
  EXPECT_EQ(got->batches[0][1].new_id, 6u);
  EXPECT_EQ(got->batches[0][1].received_splits, (std::vector<int32_t>{1, 2}));
  EXPECT_TRUE(got->batches[0][1].moves_nothing);
  EXPECT_EQ(got->failures[0].message, "why");
  EXPECT_EQ(got->evicted_ids, sent.evicted_ids);
  EXPECT_FALSE(got->end.has_value());
}

TEST(WireTest, Plan_IsAlikeForAll_ButForAllToAlls) {
  Plan plan;
  plan.batches = {{Planned(Sig("a"))}};
  EXPECT_TRUE(IsAlikeForAll(plan));
  plan.batches.push_back({Planned(Share(Rich()))});
  plan.batches[1][0].senders = {Share(Rich()), Share(Rich())};
  EXPECT_FALSE(IsAlikeForAll(plan));
}

// Each of these invalid messages must be refused without a crash.
TEST(WireTest, OutOfBounds_IsRefused) {
  auto announce = [](TensorSignature signature) {
    Announcement sent;
    sent.groups = {{AnnouncedTensor{kNoSignatureId, Share(std::move(signature))}}};
    return DecodeAnnouncement(Encode(sent), 2).status().code();
  };
  EXPECT_EQ(announce(Rich()), absl::StatusCode::kOk);
  EXPECT_EQ(announce(MakeSignature("")), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(announce(MakeSignature("x", {-1})), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(announce(MakeSignature("x", {1}, static_cast<OpKind>(99))),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      announce(MakeSignature("x", {1}, OpKind::kJoin, static_cast<collectives::DataType>(-3))),
      absl::StatusCode::kInvalidArgument);
  TensorSignature root = Rich();
  root.root_rank = 2;
  EXPECT_EQ(announce(root), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(DecodeAnnouncement("\xff\xff nonsense", 2).ok());
}

TEST(WireTest, TimelineParts_ComeBackAsTheyWere) {
  Announcement announcement;
  announcement.timeline = TimelinePart{3, true, std::string("\0chunk", 6)};
  const auto decoded = DecodeAnnouncement(Encode(announcement), 2);
  ASSERT_TRUE(decoded.ok());
  ASSERT_TRUE(decoded->timeline.has_value());
  EXPECT_EQ(decoded->timeline->generation, 3u);
  EXPECT_TRUE(decoded->timeline->last);
  EXPECT_EQ(decoded->timeline->chunk, announcement.timeline->chunk);
  EXPECT_FALSE(DecodeAnnouncement(Encode(Announcement()), 2)->timeline.has_value());
}

TEST(WireTest, TimelineOrders_ComeBackAsTheyWere) {
  Plan plan;
  plan.timeline = TimelineOrder{2, true, true};
  const auto decoded = DecodePlan(Encode(plan, 1), 2, KnownSignatures());
  ASSERT_TRUE(decoded.ok());
  ASSERT_TRUE(decoded->timeline.has_value());
  EXPECT_EQ(decoded->timeline->generation, 2u);
  EXPECT_TRUE(decoded->timeline->records);
  EXPECT_TRUE(decoded->timeline->mark_cycles);
  EXPECT_FALSE(DecodePlan(Encode(Plan(), 1), 2, KnownSignatures())->timeline.has_value());
}

TEST(WireTest, Plan_UnknownIdOrWrongTable_IsRefused) {
  Plan plan;
  plan.batches = {{Planned(Sig("a"))}};
  plan.batches[0][0].known_id = 5;
  EXPECT_FALSE(DecodePlan(Encode(plan, 1), 2, KnownSignatures()).ok());
  plan.batches = {{Planned(Sig("g", {2}, OpKind::kAllGather))}};
  plan.batches[0][0].first_dims = {1, 2, 3};
  EXPECT_FALSE(DecodePlan(Encode(plan, 1), 2, KnownSignatures()).ok());
  plan.batches[0][0].first_dims = {1, -2};
  EXPECT_FALSE(DecodePlan(Encode(plan, 1), 2, KnownSignatures()).ok());
  plan.batches = {{Planned(Sig("t", {2}, OpKind::kAllToAll))}};
  plan.batches[0][0].senders = {Sig("t", {2}, OpKind::kAllToAll)};
  EXPECT_FALSE(DecodePlan(Encode(plan, 0), 2, KnownSignatures()).ok());
  plan.batches = {{}};
  EXPECT_FALSE(DecodePlan(Encode(plan, 1), 2, KnownSignatures()).ok());
}

}  // namespace
}  // namespace hvd::worker_runtime::negotiation
