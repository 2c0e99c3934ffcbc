#include "worker_runtime/engine/result_layout.h"

#include <memory>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::worker_runtime::engine {
namespace {

using testing::Each;
using testing::ElementsAre;

// Of rank 0, as negotiation has it.
negotiation::PlannedTensor Planned(negotiation::OpKind op, std::vector<int64_t> shape) {
  negotiation::TensorSignature signature;
  signature.op = op;
  signature.shape = std::move(shape);
  negotiation::PlannedTensor planned;
  planned.signature = std::make_shared<const negotiation::TensorSignature>(std::move(signature));
  return planned;
}

TEST(GatherLayout, RanksMayDiffer) {
  negotiation::PlannedTensor planned = Planned(negotiation::OpKind::kAllGather, {2, 3});
  planned.first_dims = {2, 0, 5};
  TensorResult result;
  EXPECT_THAT(GatherLayout(planned, result), ElementsAre(24, 0, 60));
  EXPECT_THAT(result.shape, ElementsAre(7, 3));
}

TEST(ExchangeLayout, OwnSplitsAndThoseOfThePlan) {
  negotiation::PlannedTensor planned = Planned(negotiation::OpKind::kAllToAll, {3, 2});
  planned.received_splits = {2, 4};
  negotiation::TensorSignature own = *planned.signature;
  own.shape = {5, 2};
  own.splits = {0, 4};
  TensorResult result;
  const ExchangeLayout layout = MakeExchangeLayout(planned, own, result);
  EXPECT_THAT(layout.send, ElementsAre(0, 32));
  EXPECT_THAT(layout.receive, ElementsAre(16, 32));
  EXPECT_FALSE(layout.is_empty);
  EXPECT_THAT(result.shape, ElementsAre(6, 2));
  EXPECT_THAT(result.received_splits, ElementsAre(2, 4));
}

TEST(ExchangeLayout, WithoutSplits_IsEven) {
  negotiation::PlannedTensor planned = Planned(negotiation::OpKind::kAllToAll, {4, 2});
  planned.received_splits = {2, 1};
  TensorResult result;
  EXPECT_THAT(MakeExchangeLayout(planned, *planned.signature, result).send, ElementsAre(16, 16));
}

TEST(ExchangeLayout, EmptyIfThePlanSaysSo) {
  negotiation::PlannedTensor planned = Planned(negotiation::OpKind::kAllToAll, {2, 0});
  planned.received_splits = {1, 0};
  planned.moves_nothing = true;
  TensorResult result;
  EXPECT_TRUE(MakeExchangeLayout(planned, *planned.signature, result).is_empty);
  EXPECT_THAT(result.shape, ElementsAre(1, 0));
}

TEST(ScatterLayout, TheFirstRanksGetOneMore) {
  const negotiation::PlannedTensor planned = Planned(negotiation::OpKind::kReduceScatter, {5, 2});
  for (int rank = 0; rank < 3; ++rank) {
    TensorResult result;
    EXPECT_THAT(ScatterLayout(*planned.signature, rank, 3, result), ElementsAre(4, 4, 2));
    EXPECT_THAT(result.shape, ElementsAre(rank < 2 ? 2 : 1, 2));
  }
  TensorResult result;
  EXPECT_THAT(
      ScatterLayout(*Planned(negotiation::OpKind::kReduceScatter, {0, 2}).signature, 0, 3, result),
      Each(0));
}

}  // namespace
}  // namespace hvd::worker_runtime::engine
