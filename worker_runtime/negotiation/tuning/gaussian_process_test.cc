#include "worker_runtime/negotiation/tuning/gaussian_process.h"

#include <cmath>

#include "gtest/gtest.h"

namespace hvd::worker_runtime::negotiation::tuning {
namespace {

double Wave(double x) { return std::sin(4 * x); }

GaussianProcess FitWave(int count, double most_noise) {
  std::vector<Point> points;
  std::vector<double> values;
  for (int i = 0; i < count; ++i) {
    points.push_back({static_cast<double>(i) / (count - 1)});
    values.push_back(Wave(points.back()[0]));
  }
  return GaussianProcess(points, values, most_noise);
}

TEST(GaussianProcessTest, At_BetweenMeasurements_GivesTheFunction) {
  const GaussianProcess process = FitWave(7, 0.8);
  for (double x : {0.05, 0.3, 0.55, 0.9}) EXPECT_NEAR(process.At({x}).mean, Wave(x), 0.03) << x;
}

TEST(GaussianProcessTest, At_FarFromMeasurements_IsLessSure) {
  const GaussianProcess process({{0.1}, {0.2}, {0.3}}, {1, 3, 2}, 0);
  EXPECT_LT(process.At({0.2}).deviation, process.At({0.9}).deviation);
}

TEST(GaussianProcessTest, ExpectedImprovement_AtTheBestMeasurement_IsSmallerThanBeside) {
  const GaussianProcess process = FitWave(5, 0);
  EXPECT_LT(process.ExpectedImprovement({0.5}, 1.0), process.ExpectedImprovement({0.4}, 0.9));
  EXPECT_GE(process.ExpectedImprovement({0.5}, 100), 0);
}

TEST(GaussianProcessTest, At_WithEqualValues_GivesThatValue) {
  const GaussianProcess process({{0.0}, {1.0}}, {7, 7}, 0.8);
  EXPECT_DOUBLE_EQ(process.At({0.5}).mean, 7);
}

TEST(GaussianProcessTest, At_WithNoiseAllowed_DoesNotFollowAnOutlier) {
  std::vector<Point> points;
  std::vector<double> values;
  for (int i = 0; i <= 20; ++i) {
    points.push_back({i / 20.0});
    values.push_back(i / 20.0 + (i % 2 == 0 ? 0.2 : -0.2));
  }
  const GaussianProcess process(points, values, 0.8);
  EXPECT_NEAR(process.At({0.5}).mean, 0.5, 0.1);
}

}  // namespace
}  // namespace hvd::worker_runtime::negotiation::tuning
