#include "worker_runtime/engine/reduction_math.h"

#include <cstdint>
#include <limits>
#include <vector>

#include "collectives/float16.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::worker_runtime::engine {
namespace {

using ::testing::ElementsAre;

TEST(ReductionMathTest, FinishReduction_AverageOfIntegers_IsCutOffExactly) {
  std::vector<int32_t> data{49, 48, -49, -50};
  FinishReduction(data.data(), data.size(), collectives::DataType::kInt32,
                  negotiation::Reduction::kAverage, 1.0, 49);
  EXPECT_THAT(data, ElementsAre(1, 0, -1, -1));
  std::vector<int64_t> wide{(int64_t{1} << 60) + 3};
  FinishReduction(wide.data(), 1, collectives::DataType::kInt64, negotiation::Reduction::kAverage,
                  1.0, 1);
  EXPECT_THAT(wide, ElementsAre((int64_t{1} << 60) + 3));
}

TEST(ReductionMathTest, WideSums_AreForAveragesOfIntegersBelow64Bits) {
  EXPECT_TRUE(NeedsWideSum(negotiation::Reduction::kAverage, collectives::DataType::kUint8));
  EXPECT_TRUE(NeedsWideSum(negotiation::Reduction::kAverage, collectives::DataType::kInt32));
  EXPECT_FALSE(NeedsWideSum(negotiation::Reduction::kAverage, collectives::DataType::kInt64));
  EXPECT_FALSE(NeedsWideSum(negotiation::Reduction::kAverage, collectives::DataType::kBool));
  EXPECT_FALSE(NeedsWideSum(negotiation::Reduction::kAverage, collectives::DataType::kFloat16));
  EXPECT_FALSE(NeedsWideSum(negotiation::Reduction::kSum, collectives::DataType::kUint8));
}

TEST(ReductionMathTest, WideAndNarrow_KeepNumbers) {
  const int8_t numbers[] = {-128, -1, 0, 127};
  int64_t wide[4];
  Widen(numbers, 4, collectives::DataType::kInt8, wide);
  EXPECT_EQ(wide[0] + wide[3], -1);
  int8_t narrow[4];
  Narrow(wide, 4, collectives::DataType::kInt8, narrow);
  EXPECT_EQ(std::vector<int8_t>(narrow, narrow + 4), std::vector<int8_t>(numbers, numbers + 4));
}

TEST(ReductionMathTest, FinishReduction_FloatsAndFactors) {
  std::vector<double> data{3, 9};
  FinishReduction(data.data(), 2, collectives::DataType::kFloat64, negotiation::Reduction::kAverage,
                  2.0, 3);
  EXPECT_THAT(data, ElementsAre(2, 6));
  FinishReduction(data.data(), 2, collectives::DataType::kFloat64, negotiation::Reduction::kMax,
                  0.5, 3);
  EXPECT_THAT(data, ElementsAre(1, 3));
  std::vector<int32_t> integers{5};
  FinishReduction(integers.data(), 1, collectives::DataType::kInt32,
                  negotiation::Reduction::kAverage, 0.5, 2);
  EXPECT_THAT(integers, ElementsAre(1));
}

template <typename T>
T Neutral(collectives::DataType type, negotiation::Reduction reduction) {
  T value;
  FillNeutral(&value, 1, type, reduction);
  return value;
}

TEST(ReductionMathTest, FillNeutral_KeepsOtherElements) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(Neutral<float>(collectives::DataType::kFloat32, negotiation::Reduction::kSum), 0);
  EXPECT_EQ(Neutral<float>(collectives::DataType::kFloat32, negotiation::Reduction::kMin),
            kInfinity);
  EXPECT_EQ(Neutral<float>(collectives::DataType::kFloat32, negotiation::Reduction::kMax),
            -kInfinity);
  EXPECT_EQ(Neutral<int8_t>(collectives::DataType::kInt8, negotiation::Reduction::kMax), -128);
  EXPECT_EQ(Neutral<uint8_t>(collectives::DataType::kUint8, negotiation::Reduction::kMin), 255);
  EXPECT_EQ(Neutral<int64_t>(collectives::DataType::kInt64, negotiation::Reduction::kProduct), 1);
  EXPECT_EQ(
      Neutral<collectives::Bfloat16>(collectives::DataType::kBfloat16, negotiation::Reduction::kMin)
          .ToFloat(),
      kInfinity);
  EXPECT_EQ(Neutral<collectives::Float16>(collectives::DataType::kFloat16,
                                          negotiation::Reduction::kProduct)
                .ToFloat(),
            1);
  EXPECT_EQ(Neutral<uint8_t>(collectives::DataType::kBool, negotiation::Reduction::kMin), 1);
  EXPECT_EQ(Neutral<uint8_t>(collectives::DataType::kBool, negotiation::Reduction::kMax), 0);
  EXPECT_EQ(Neutral<uint8_t>(collectives::DataType::kBool, negotiation::Reduction::kAverage), 0);
}

}  // namespace
}  // namespace hvd::worker_runtime::engine
