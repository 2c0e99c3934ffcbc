#include "collectives/adasum/adasum.h"

#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "collectives/conformance/rank_group.h"
#include "collectives/inproc/inproc_backend.h"
#include "collectives/type_dispatch.h"
#include "gtest/gtest.h"

namespace hvd::collectives::adasum {
namespace {

using Vector = std::vector<double>;

const CallOptions kPatient = {absl::Seconds(60)};

double Dot(const Vector& a, const Vector& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

Vector Reference(const Vector& a, const Vector& b) {
  Vector result(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    result[i] = (1 - Dot(a, b) / (2 * Dot(a, a))) * a[i] + (1 - Dot(a, b) / (2 * Dot(b, b))) * b[i];
  }
  return result;
}

// In pairs, as a tree over a power of two.
Vector Tree(const std::vector<Vector>& inputs, size_t from, size_t to) {
  if (to - from == 1) return inputs[from];
  const size_t middle = (from + to) / 2;
  return Reference(Tree(inputs, from, middle), Tree(inputs, middle, to));
}

Vector Reference(std::vector<Vector> inputs) {
  size_t places = 1;
  while (places * 2 <= inputs.size()) places *= 2;
  for (size_t i = 0; inputs.size() > places; ++i) {
    inputs[i] = Reference(inputs[i], inputs[i + 1]);
    inputs.erase(inputs.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  }
  return Tree(inputs, 0, places);
}

std::vector<Vector> RandomInputs(int ranks, size_t count) {
  std::mt19937 random(ranks);
  std::normal_distribution<double> normal(0.3);
  std::vector<Vector> inputs(ranks, Vector(count));
  for (Vector& input : inputs) {
    for (double& x : input) x = normal(random);
  }
  return inputs;
}

class AdasumTest : public testing::Test {
 protected:
  // Every rank's result for every rank's input.
  template <typename T, typename Make, typename Value>
  std::vector<Vector> Combine(DataType type, const std::vector<Vector>& inputs, Make make,
                              Value value) {
    group_.Connect(static_cast<int>(inputs.size()));
    std::vector<Vector> results(inputs.size());
    group_.Run([&](Communicator& c) {
      std::vector<T> data;
      for (const double x : inputs[c.rank()]) data.push_back(make(x));
      EXPECT_EQ(AdasumAllReduce(c, data.data(), data.size(), type, kPatient), absl::OkStatus());
      for (const T& x : data) results[c.rank()].push_back(value(x));
    });
    return results;
  }

  std::vector<Vector> CombineDoubles(const std::vector<Vector>& inputs) {
    const auto same = [](double x) { return x; };
    return Combine<double>(DataType::kFloat64, inputs, same, same);
  }

  conformance::RankGroup group_{inproc::MakeInprocBackend()};
};

void ExpectNear(const std::vector<Vector>& results, const Vector& expected, double tolerance) {
  for (const Vector& result : results) {
    ASSERT_EQ(result, results[0]) << "ranks disagree";
    ASSERT_EQ(result.size(), expected.size());
    for (size_t i = 0; i < result.size(); ++i) {
      ASSERT_NEAR(result[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << i;
    }
  }
}

TEST_F(AdasumTest, AgreesWithTheReference) {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    const auto inputs = RandomInputs(ranks, 501);
    ExpectNear(CombineDoubles(inputs), Reference(inputs), 1e-12);
  }
}

TEST_F(AdasumTest, EveryFloatType_AgreesUpToItsRounding) {
  const auto inputs = RandomInputs(4, 300);
  const Vector expected = Reference(inputs);
  ExpectNear(Combine<float>(
                 DataType::kFloat32, inputs, [](double x) { return static_cast<float>(x); },
                 [](float x) { return x; }),
             expected, 1e-5);
  ExpectNear(Combine<Float16>(
                 DataType::kFloat16, inputs,
                 [](double x) { return Float16::FromFloat(static_cast<float>(x)); },
                 [](Float16 x) { return x.ToFloat(); }),
             expected, 1e-2);
  ExpectNear(Combine<Bfloat16>(
                 DataType::kBfloat16, inputs,
                 [](double x) { return Bfloat16::FromFloat(static_cast<float>(x)); },
                 [](Bfloat16 x) { return x.ToFloat(); }),
             expected, 5e-2);
}

TEST_F(AdasumTest, ParallelGivesTheMean_OrthogonalTheSum) {
  ExpectNear(CombineDoubles({{1, 2, 3}, {1, 2, 3}}), {1, 2, 3}, 1e-15);
  ExpectNear(CombineDoubles({{1, 2}, {1, 2}, {1, 2}, {1, 2}, {1, 2}}), {1, 2}, 1e-15);
  ExpectNear(CombineDoubles({{1, 0, 0}, {0, 2, 0}}), {1, 2, 0}, 1e-15);
}

TEST_F(AdasumTest, ZeroVectorsAndEmptyTensors) {
  ExpectNear(CombineDoubles({{0, 0}, {3, 4}}), {3, 4}, 1e-15);
  ExpectNear(CombineDoubles({{0, 0}, {0, 0}}), {0, 0}, 1e-15);
  ExpectNear(CombineDoubles({{}, {}}), {}, 1e-15);
}

TEST_F(AdasumTest, OtherTypes_AreRefusedAndHarmNothing) {
  group_.Connect(2);
  group_.Run([](Communicator& c) {
    int32_t value = 1;
    const auto status = AdasumAllReduce(c, &value, 1, DataType::kInt32, kPatient);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
    EXPECT_EQ(c.Barrier(kPatient), absl::OkStatus());
    EXPECT_EQ(value, 1);
  });
}

}  // namespace
}  // namespace hvd::collectives::adasum
