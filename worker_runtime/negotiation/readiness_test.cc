#include "worker_runtime/negotiation/readiness.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "worker_runtime/negotiation/signature_test_util.h"

namespace hvd {
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
  EXPECT_EQ(Ready(), "b+a");
}

TEST_F(ReadinessTest, GroupsThatOverlap_AreOne) {
  Add(0, {"a", "b"});
  Add(1, {"b", "c"});
  for (int rank : {0, 2}) Add(rank, {"c"});
  for (int rank : {1, 2}) Add(rank, {"a"});
  EXPECT_EQ(Ready(), "");
  Add(2, {"b"});
  EXPECT_EQ(Ready(), "b+a+c");
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

TEST_F(ReadinessTest, Take_RemovesTheWholeGroup) {
  Add(0, {"a", "b"});
  EXPECT_EQ(table_.Take("b").size(), 2u);
  EXPECT_TRUE(table_.waiting().empty());
  EXPECT_TRUE(table_.Take("b").empty());
  for (int rank : {0, 1, 2}) Add(rank, {"a"});
  EXPECT_EQ(Ready(), "a");
}

}  // namespace
}  // namespace hvd
