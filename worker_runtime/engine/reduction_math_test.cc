#include "worker_runtime/engine/reduction_math.h"

#include <limits>
#include <vector>

#include "collectives/float16.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd {
namespace {

using ::testing::ElementsAre;

TEST(ReductionMathTest, FinishReduction_AverageOfIntegers_IsCutOffExactly) {
  std::vector<int32_t> data{49, 48, -49, -50};
  FinishReduction(data.data(), data.size(), DataType::kInt32, Reduction::kAverage, 1.0, 49);
  EXPECT_THAT(data, ElementsAre(1, 0, -1, -1));
  std::vector<int64_t> wide{(int64_t{1} << 60) + 3};
  FinishReduction(wide.data(), 1, DataType::kInt64, Reduction::kAverage, 1.0, 1);
  EXPECT_THAT(wide, ElementsAre((int64_t{1} << 60) + 3));
}

TEST(ReductionMathTest, FinishReduction_FloatsAndFactors) {
  std::vector<double> data{3, 9};
  FinishReduction(data.data(), 2, DataType::kFloat64, Reduction::kAverage, 2.0, 3);
  EXPECT_THAT(data, ElementsAre(2, 6));
  FinishReduction(data.data(), 2, DataType::kFloat64, Reduction::kMax, 0.5, 3);
  EXPECT_THAT(data, ElementsAre(1, 3));
  std::vector<int32_t> integers{5};
  FinishReduction(integers.data(), 1, DataType::kInt32, Reduction::kAverage, 0.5, 2);
  EXPECT_THAT(integers, ElementsAre(1));
}

template <typename T>
T Neutral(DataType type, Reduction reduction) {
  T value;
  FillNeutral(&value, 1, type, reduction);
  return value;
}

TEST(ReductionMathTest, FillNeutral_LeavesOthersAsTheyAre) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(Neutral<float>(DataType::kFloat32, Reduction::kSum), 0);
  EXPECT_EQ(Neutral<float>(DataType::kFloat32, Reduction::kMin), kInfinity);
  EXPECT_EQ(Neutral<float>(DataType::kFloat32, Reduction::kMax), -kInfinity);
  EXPECT_EQ(Neutral<int8_t>(DataType::kInt8, Reduction::kMax), -128);
  EXPECT_EQ(Neutral<uint8_t>(DataType::kUint8, Reduction::kMin), 255);
  EXPECT_EQ(Neutral<int64_t>(DataType::kInt64, Reduction::kProduct), 1);
  EXPECT_EQ(Neutral<Bfloat16>(DataType::kBfloat16, Reduction::kMin).ToFloat(), kInfinity);
  EXPECT_EQ(Neutral<Float16>(DataType::kFloat16, Reduction::kProduct).ToFloat(), 1);
  EXPECT_EQ(Neutral<uint8_t>(DataType::kBool, Reduction::kMin), 1);
  EXPECT_EQ(Neutral<uint8_t>(DataType::kBool, Reduction::kMax), 0);
  EXPECT_EQ(Neutral<uint8_t>(DataType::kBool, Reduction::kAverage), 0);
}

}  // namespace
}  // namespace hvd
