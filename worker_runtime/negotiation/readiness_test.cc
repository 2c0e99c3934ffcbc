#include "worker_runtime/negotiation/readiness.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "worker_runtime/negotiation/signature_test_util.h"

namespace hvd::worker_runtime::negotiation {
namespace {

const absl::Time kNow = absl::UnixEpoch();

class ReadinessTest : public testing::Test {
 protected:
  void Add(int rank, const std::vector<std::string>& names, OpKind op = OpKind::kAllReduce) {
    std::vector<SignaturePtr> group;
    for (const std::string& name : names) group.push_back(Sig(name, {2}, op));
    ASSERT_TRUE(table_.Add(rank, group, kNow).ok());
  }

  // "a b+c": the operations that became ready; + joins the tensors of one.
  std::string Ready() {
    std::string text;
    for (const auto& operation : table_.TakeReady()) {
      if (!text.empty()) text += " ";
      for (size_t i = 0; i < operation.size(); ++i) {
        for (const SignaturePtr& signature : operation[i].by_rank) {
          if (signature == nullptr) continue;
          absl::StrAppend(&text, i == 0 ? "" : "+", signature->name);
          break;
        }
      }
    }
    return text;
  }

  Readiness table_{3};
};

TEST_F(ReadinessTest, Tensor_IsReadyWhenAllRanksHaveSubmittedIt) {
  Add(0, {"a"});
  Add(1, {"a"});
  EXPECT_EQ(Ready(), "");
  EXPECT_TRUE(table_.IsWaiting(1, "a"));
  EXPECT_FALSE(table_.IsWaiting(2, "a"));
  Add(2, {"a"});
  EXPECT_EQ(Ready(), "a");
  EXPECT_TRUE(table_.waiting().empty());
}

TEST_F(ReadinessTest, OrderOfSubmission_MayDiffer) {
  for (const char* name : {"a", "b"}) Add(0, {name});
  for (const char* name : {"b", "a"}) Add(1, {name});
  for (const char* name : {"b", "a"}) Add(2, {name});
  EXPECT_EQ(Ready(), "b a");
}

TEST_F(ReadinessTest, Group_IsReadyAsAWhole) {
  Add(0, {"a", "b"});
  Add(1, {"b", "a"});
  Add(2, {"a"});
  EXPECT_EQ(Ready(), "");
  Add(2, {"b"});
  EXPECT_EQ(Ready(), "a+b");
}

TEST_F(ReadinessTest, GroupsThatOverlap_AreOne) {
  Add(0, {"a", "b"});
  Add(1, {"b", "c"});
  for (int rank : {0, 2}) Add(rank, {"c"});
  for (int rank : {1, 2}) Add(rank, {"a"});
  EXPECT_EQ(Ready(), "");
  Add(2, {"b"});
  EXPECT_EQ(Ready(), "a+b+c");
}

TEST_F(ReadinessTest, Add_TwiceByOneRank_IsRefused) {
  Add(0, {"a"});
  EXPECT_EQ(table_.Add(0, {Sig("a")}, kNow).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(table_.Add(1, {Sig("b"), Sig("b")}, kNow).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ReadinessTest, JoinedRanks_CountForAllButJoin) {
  Add(0, {"a"});
  Add(1, {"join"}, OpKind::kJoin);
  EXPECT_EQ(table_.Missing(table_.waiting().at("a")), std::vector<int>{2});
  EXPECT_EQ(table_.Missing(table_.waiting().at("join")), (std::vector<int>{0, 2}));
  Add(2, {"join"}, OpKind::kJoin);
  EXPECT_EQ(Ready(), "a");
  Add(0, {"b"});
  EXPECT_EQ(Ready(), "b");
  Add(0, {"join"}, OpKind::kJoin);
  EXPECT_EQ(Ready(), "join");
  EXPECT_EQ(table_.last_joined_rank(), 0);
  EXPECT_FALSE(table_.joined(1));
}

TEST_F(ReadinessTest, AfterJoin_AllRanksAreNeededAgain) {
  for (int rank : {0, 1, 2}) Add(rank, {"join"}, OpKind::kJoin);
  Add(0, {"a"});
  EXPECT_EQ(Ready(), "join");
}

TEST_F(ReadinessTest, JoinedRanks_CountForGroups) {
  Add(0, {"a", "b"});
  Add(2, {"join"}, OpKind::kJoin);
  Add(1, {"a"});
  EXPECT_EQ(Ready(), "");
  Add(1, {"b"});
  EXPECT_EQ(Ready(), "a+b");
}

TEST_F(ReadinessTest, GroupsThatMeetLater_AreOne) {
  Add(0, {"a", "b"});
  Add(1, {"d", "e", "c"});
  for (int rank : {0, 2}) Add(rank, {"d", "c"});
  for (int rank : {1, 2}) Add(rank, {"a"});
  for (int rank : {1, 2}) Add(rank, {"b"});
  EXPECT_EQ(Ready(), "a+b");
  Add(0, {"e"});
  Add(2, {"e"});
  EXPECT_EQ(Ready(), "d+e+c");
}

TEST_F(ReadinessTest, Take_RemovesTheWholeGroup) {
  Add(0, {"a", "b"});
  EXPECT_EQ(table_.Take("b").size(), 2u);
  EXPECT_TRUE(table_.waiting().empty());
  EXPECT_TRUE(table_.Take("b").empty());
  for (int rank : {0, 1, 2}) Add(rank, {"a"});
  EXPECT_EQ(Ready(), "a");
}

// A case: how the ranks submit `count` tensors, and which of them are taken then.
using Course = void (*)(Readiness& table, const std::vector<SignaturePtr>& tensors);
constexpr int kRanks = 4;

void Submit(Readiness& table, int rank, absl::Span<const SignaturePtr> group) {
  ASSERT_TRUE(table.Add(rank, group, kNow).ok());
}

void SubmitEach(Readiness& table, int rank, absl::Span<const SignaturePtr> tensors) {
  for (const SignaturePtr& tensor : tensors) Submit(table, rank, {tensor});
}

uint64_t LookUps(Course course, int count) {
  Readiness table(kRanks);
  std::vector<SignaturePtr> tensors;
  for (int i = 0; i < count; ++i) tensors.push_back(Sig(absl::StrCat("t", i)));
  course(table, tensors);
  size_t ready = 0;
  for (const auto& operation : table.TakeReady()) ready += operation.size();
  EXPECT_GE(ready, tensors.size());
  EXPECT_TRUE(table.waiting().empty());
  return table.look_ups();
}

// Twice as many tensors may cost twice as much, and a little for tables that grow in steps.
void ExpectLinear(Course course) {
  EXPECT_LE(LookUps(course, 2000), 5 * LookUps(course, 1000) / 2);
  EXPECT_LE(LookUps(course, 1000), uint64_t{1000} * kRanks * 12);
}

TEST(ReadinessCostTest, OneGroup) {
  ExpectLinear([](Readiness& table, const std::vector<SignaturePtr>& tensors) {
    for (int rank = 0; rank < kRanks; ++rank) Submit(table, rank, tensors);
  });
}

TEST(ReadinessCostTest, GroupOfOneRankOnly) {
  ExpectLinear([](Readiness& table, const std::vector<SignaturePtr>& tensors) {
    Submit(table, 0, tensors);
    for (int rank = 1; rank < kRanks; ++rank) SubmitEach(table, rank, tensors);
  });
}

TEST(ReadinessCostTest, GroupsThatOverlapInAChain) {
  ExpectLinear([](Readiness& table, const std::vector<SignaturePtr>& tensors) {
    const auto all = absl::MakeConstSpan(tensors);
    for (size_t i = 0; i < all.size(); i += 2) Submit(table, 0, all.subspan(i, 2));
    Submit(table, 1, all.first(1));
    for (size_t i = 1; i < all.size(); i += 2) Submit(table, 1, all.subspan(i, 2));
    for (int rank = 2; rank < kRanks; ++rank) SubmitEach(table, rank, all);
  });
}

TEST(ReadinessCostTest, GroupThatEndsByJoin) {
  ExpectLinear([](Readiness& table, const std::vector<SignaturePtr>& tensors) {
    for (int rank = 0; rank < kRanks - 1; ++rank) Submit(table, rank, tensors);
    for (int rank = kRanks - 1; rank >= 0; --rank) {
      Submit(table, rank, {Sig("join", {}, OpKind::kJoin)});
    }
  });
}

TEST(ReadinessCostTest, SingleTensors) {
  ExpectLinear([](Readiness& table, const std::vector<SignaturePtr>& tensors) {
    for (int rank = 0; rank < kRanks; ++rank) SubmitEach(table, rank, tensors);
  });
}

}  // namespace
}  // namespace hvd::worker_runtime::negotiation
