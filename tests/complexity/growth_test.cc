#include "tests/complexity/growth.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/complexity/operation_count.h"

namespace hvd {
namespace {

using testing::HasSubstr;

Row Quadratic(Growth allowed) {
  return {"a square", 100, {allowed, allowed, allowed}, [](int64_t n) {
            return Cost{n * n, 0, 7};
          }};
}

TEST(GrowthTest, WhatGrowsAsItMayPasses) { EXPECT_EQ(TooFast(Quadratic(Growth::kQuadratic)), ""); }

TEST(GrowthTest, WhatGrowsFasterIsNamedWithItsCosts) {
  const std::string found = TooFast(Quadratic(Growth::kLinearithmic));
  EXPECT_THAT(found, HasSubstr("operations grow from 10000 at 100 to 40000 at 200"));
  EXPECT_THAT(found, Not(HasSubstr("bytes")));
}

// A linear cost with a quadratic part is found while that part is small.
TEST(GrowthTest, ASmallQuadraticPartIsFound) {
  const Row row = {
      "mixed", 256, {Growth::kLinear}, [](int64_t n) { return Cost{100 * n + n * n / 2}; }};
  EXPECT_NE(TooFast(row), "");
}

TEST(GrowthTest, OperationsAreCounted) {
  const int64_t before = OperationCount();
  if (before == 0) GTEST_SKIP() << "only a build with --config=counted counts operations";
  EXPECT_NE(TooFast(Quadratic(Growth::kLinear)), "");
  EXPECT_GT(OperationCount(), before);
}

}  // namespace
}  // namespace hvd
