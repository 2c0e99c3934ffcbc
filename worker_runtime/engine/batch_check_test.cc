#include "worker_runtime/engine/batch_check.h"

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::worker_runtime::engine {
namespace {

using negotiation::OpKind;
using negotiation::PlannedTensor;
using negotiation::TensorSignature;

constexpr int kRank = 1, kSize = 3;

TensorSignature Signature(OpKind op, std::vector<int64_t> shape) {
  TensorSignature signature;
  signature.name = "x";
  signature.op = op;
  signature.shape = std::move(shape);
  return signature;
}

OperationTensor Part(TensorSignature signature) {
  auto operation = std::make_shared<Operation>();
  operation->signatures = {std::make_shared<const TensorSignature>(std::move(signature))};
  return {std::move(operation), 0};
}

PlannedTensor Planned(TensorSignature signature) {
  PlannedTensor planned;
  planned.signature = std::make_shared<const TensorSignature>(std::move(signature));
  return planned;
}

bool Fits(const negotiation::Batch& batch,
          const std::vector<std::optional<OperationTensor>>& parts) {
  const absl::Status status = CheckBatch(batch, parts, kRank, kSize);
  EXPECT_TRUE(status.ok() || status == absl::InternalError("the plan for 'x' does not fit the "
                                                           "request of rank 1"))
      << status;
  return status.ok();
}

// Whether a plan with a change of the request fits it.
bool FitsWith(const TensorSignature& own, const std::function<void(TensorSignature&)>& change) {
  TensorSignature changed = own;
  change(changed);
  return Fits({Planned(changed)}, {Part(own)});
}

TEST(CheckBatch, ThePlanHasTheRequestsSizeAndKind) {
  const TensorSignature own = Signature(OpKind::kAllReduce, {4, 2});
  EXPECT_TRUE(FitsWith(own, [](auto&) {}));
  EXPECT_FALSE(FitsWith(own, [](auto& planned) { planned.shape = {4, 3}; }));
  EXPECT_FALSE(
      FitsWith(own, [](auto& planned) { planned.type = collectives::DataType::kFloat64; }));
  EXPECT_FALSE(FitsWith(own, [](auto& planned) { planned.op = OpKind::kBroadcast; }));
  EXPECT_FALSE(FitsWith(own, [](auto& planned) { planned.on_device = true; }));
}

TEST(CheckBatch, RowsOfAGather) {
  const TensorSignature own = Signature(OpKind::kAllGather, {4, 2});
  const auto fits = [&](std::vector<int64_t> rows) {
    PlannedTensor planned = Planned(Signature(OpKind::kAllGather, {7, 2}));
    planned.first_dims = std::move(rows);
    return Fits({planned}, {Part(own)});
  };
  EXPECT_TRUE(fits({7, 4, 0}));
  EXPECT_FALSE(fits({7, 5, 0})) << "more rows of this rank than it has";
  EXPECT_FALSE(fits({int64_t{1} << 62, 4, 0})) << "more bytes than a size can count";
  EXPECT_FALSE(fits({std::numeric_limits<int64_t>::max(), 4, 0})) << "more rows";
  EXPECT_FALSE(fits({-4, 4, 0}));
}

TEST(CheckBatch, RowsOfAnExchange) {
  TensorSignature own = Signature(OpKind::kAllToAll, {6, 2});
  own.splits = {1, 2, 3};
  const auto fits = [&](std::vector<int32_t> rows) {
    PlannedTensor planned = Planned(Signature(OpKind::kAllToAll, {9, 2}));
    planned.received_splits = std::move(rows);
    return Fits({planned}, {Part(own)});
  };
  EXPECT_TRUE(fits({5, 2, 0}));
  EXPECT_FALSE(fits({5, 1, 0})) << "less room for this rank's own rows than it sends";
  EXPECT_FALSE(fits({-1, 2, 0}));
}

TEST(CheckBatch, FusedTensorsAreAlike) {
  const auto fits = [](const std::function<void(TensorSignature&)>& change) {
    TensorSignature second = Signature(OpKind::kAllReduce, {8});
    change(second);
    return Fits({Planned(Signature(OpKind::kAllReduce, {4})), Planned(second)},
                {std::nullopt, Part(second)});
  };
  EXPECT_TRUE(fits([](auto&) {}));
  EXPECT_FALSE(fits([](auto& second) { second.type = collectives::DataType::kUint8; }));
  EXPECT_FALSE(fits([](auto& second) { second.op = OpKind::kBroadcast; }));
  EXPECT_FALSE(fits([](auto& second) { second.prescale = 2; }));
}

TEST(CheckBatch, SizesOfAbsentTensorsDoNotOverflow) {
  const PlannedTensor huge = Planned(Signature(OpKind::kAllReduce, {int64_t{1} << 60}));
  EXPECT_TRUE(Fits({huge}, {std::nullopt}));
  EXPECT_FALSE(Fits({huge, huge, huge, huge}, std::vector<std::optional<OperationTensor>>(4)));
}

}  // namespace
}  // namespace hvd::worker_runtime::engine
