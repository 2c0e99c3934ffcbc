#include "collectives/reduce.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "collectives/scale.h"
#include "collectives/type_dispatch.h"
#include "gtest/gtest.h"

namespace hvd::collectives {
namespace {

constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kProduct};

template <typename T>
T Of(double value) {
  if constexpr (std::is_same_v<T, BoolByte>) {
    return BoolByte{static_cast<uint8_t>(value)};
  } else if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<T>(value);
  } else {
    return T::FromFloat(static_cast<float>(value));
  }
}

template <typename T>
double Value(T value) {
  if constexpr (std::is_same_v<T, BoolByte>) {
    return value.value;
  } else if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<double>(value);
  } else {
    return value.ToFloat();
  }
}

double Model(ReduceOp op, double a, double b, bool is_bool) {
  switch (op) {
    case ReduceOp::kSum:
      return is_bool ? (a != 0 || b != 0) : a + b;
    case ReduceOp::kMin:
      return is_bool ? (a != 0 && b != 0) : std::min(a, b);
    case ReduceOp::kMax:
      return is_bool ? (a != 0 || b != 0) : std::max(a, b);
    case ReduceOp::kProduct:
      break;
  }
  return is_bool ? (a != 0 && b != 0) : a * b;
}

template <typename T>
void CheckAgainstModel(DataType type, ReduceOp op, ReduceFunction reduce, size_t count) {
  std::vector<T> a(count), b(count), out(count);
  for (size_t i = 0; i < count; ++i) {
    a[i] = Of<T>(static_cast<double>(i % 7));
    b[i] = Of<T>(static_cast<double>(i % 5));
  }
  reduce(out.data(), a.data(), b.data(), count);
  for (size_t i = 0; i < count; ++i) {
    const double expected =
        Model(op, static_cast<double>(i % 7), static_cast<double>(i % 5), type == DataType::kBool);
    ASSERT_EQ(Value(out[i]), expected) << NameOf(type) << " " << NameOf(op) << " at " << i;
  }
  reduce(a.data(), a.data(), b.data(), count);
  const auto bits = [](const std::vector<T>& v) {
    return std::string(reinterpret_cast<const char*>(v.data()), v.size() * sizeof(T));
  };
  EXPECT_EQ(bits(a), bits(out)) << "in place";
}

TEST(ReduceTest, EveryTypeAndOperation_AgreesWithTheModel) {
  for (int i = 0; i < kDataTypeCount; ++i) {
    const auto type = static_cast<DataType>(i);
    for (const ReduceOp op : kOps) {
      for (const size_t count : {0, 1, 7, 8, 33, 1000}) {
        Dispatch(type, [&](auto tag) {
          using T = typename decltype(tag)::Type;
          CheckAgainstModel<T>(type, op, GetReduceFunction(type, op), count);
          CheckAgainstModel<T>(type, op, GetPortableReduceFunction(type, op), count);
        });
      }
    }
  }
}

// Random bits: infinities, NaN and subnormals included.
TEST(ReduceTest, KernelsOfThisCpu_GiveTheSameBitsAsThePortableOnes) {
  std::mt19937 random(7);
  for (const DataType type : {DataType::kFloat16, DataType::kBfloat16}) {
    for (const ReduceOp op : kOps) {
      std::vector<Float16> a(4099), b(4099), fast(4099), slow(4099);
      for (auto& x : a) x.bits = static_cast<uint16_t>(random());
      for (auto& x : b) x.bits = static_cast<uint16_t>(random());
      GetReduceFunction(type, op)(fast.data(), a.data(), b.data(), a.size());
      GetPortableReduceFunction(type, op)(slow.data(), a.data(), b.data(), a.size());
      const int exponent = type == DataType::kFloat16 ? 0x7c00 : 0x7f80;
      for (size_t i = 0; i < a.size(); ++i) {
        const bool both_nan =
            (fast[i].bits & 0x7fff) > exponent && (slow[i].bits & 0x7fff) > exponent;
        if (!both_nan) {
          ASSERT_EQ(fast[i].bits, slow[i].bits) << NameOf(type) << " " << NameOf(op) << " " << i;
        }
      }
    }
  }
}

TEST(ReducerTest, AnyNumberOfSources_AgreesWithPairs) {
  for (int i = 0; i < kDataTypeCount; ++i) {
    const auto type = static_cast<DataType>(i);
    if (type == DataType::kFloat16 || type == DataType::kBfloat16) continue;
    for (const ReduceOp op : kOps) {
      for (const size_t sources : {2, 3, 5}) {
        constexpr size_t kCount = 5001;
        const size_t bytes = kCount * SizeOf(type);
        std::mt19937 random(3);
        std::vector<std::string> data(sources, std::string(bytes, '\1'));
        for (std::string& source : data) {
          for (char& byte : source) byte = static_cast<char>(random() % 2);
        }
        std::string expected = data[0];
        for (size_t s = 1; s < sources; ++s) {
          GetReduceFunction(type, op)(&expected[0], expected.data(), data[s].data(), kCount);
        }
        const std::vector<const void*> places = [&] {
          std::vector<const void*> all;
          for (const std::string& source : data) all.push_back(source.data());
          return all;
        }();
        std::string out(bytes, '\0');
        Reducer(type, op)(&out[0], places, kCount);
        EXPECT_TRUE(out == expected) << NameOf(type) << " " << NameOf(op) << " " << sources;
        Reducer(type, op)(&data[0][0], places, kCount);
        EXPECT_TRUE(data[0] == expected) << "in place, " << NameOf(type) << " " << NameOf(op);
      }
    }
  }
}

// Each small summand alone is less than half of the large one's last bit, and so would be lost if
// every partial sum were rounded.
TEST(ReducerTest, SixteenBitFloats_AreRoundedOnce) {
  constexpr size_t kCount = 19;
  for (const bool portable : {false, true}) {
    Dispatch(DataType::kBfloat16, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      const std::vector<T> large(kCount, Of<T>(256)), small(kCount, Of<T>(0.75));
      std::vector<T> out(kCount);
      const std::vector<const void*> sources = {large.data(), small.data(), small.data(),
                                                small.data()};
      Reducer(DataType::kBfloat16, ReduceOp::kSum, portable)(out.data(), sources, kCount);
      for (const T& value : out) EXPECT_EQ(Value(value), 258) << portable;
    });
    const std::vector<Float16> large(kCount, Of<Float16>(2048)), small(kCount, Of<Float16>(0.75));
    std::vector<Float16> out(kCount);
    const std::vector<const void*> sources = {large.data(), small.data(), small.data(),
                                              small.data()};
    Reducer(DataType::kFloat16, ReduceOp::kSum, portable)(out.data(), sources, kCount);
    for (const Float16& value : out) EXPECT_EQ(Value(value), 2050) << portable;
  }
}

TEST(ReduceTest, Integers_WrapAround) {
  int32_t a = std::numeric_limits<int32_t>::max(), b = 1, out = 0;
  GetReduceFunction(DataType::kInt32, ReduceOp::kSum)(&out, &a, &b, 1);
  EXPECT_EQ(out, std::numeric_limits<int32_t>::min());
  int16_t c = -32768, d = -32768, e = 1;
  GetReduceFunction(DataType::kInt16, ReduceOp::kProduct)(&e, &c, &d, 1);
  EXPECT_EQ(e, 0);
}

TEST(ReduceTest, MinAndMax_KeepNan) {
  const double nan = std::nan("");
  for (const ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax}) {
    const double a[] = {nan, 1}, b[] = {1, nan};
    double out[] = {0, 0};
    GetReduceFunction(DataType::kFloat64, op)(out, a, b, 2);
    EXPECT_TRUE(std::isnan(out[0])) << NameOf(op);
    EXPECT_TRUE(std::isnan(out[1])) << NameOf(op);
  }
}

TEST(ReduceTest, Bool_AnyNonZeroByteIsTrue) {
  const uint8_t a[] = {2, 2, 0}, b[] = {1, 0, 0};
  uint8_t out[3];
  GetReduceFunction(DataType::kBool, ReduceOp::kSum)(out, a, b, 3);
  EXPECT_EQ(std::vector<uint8_t>(out, out + 3), (std::vector<uint8_t>{1, 1, 0}));
  GetReduceFunction(DataType::kBool, ReduceOp::kProduct)(out, a, b, 3);
  EXPECT_EQ(std::vector<uint8_t>(out, out + 3), (std::vector<uint8_t>{1, 0, 0}));
}

TEST(ScaleTest, EveryType_Halves) {
  for (int i = 0; i < kDataTypeCount; ++i) {
    const auto type = static_cast<DataType>(i);
    if (type == DataType::kBool) continue;
    Dispatch(type, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      std::vector<T> data = {Of<T>(0), Of<T>(3), Of<T>(100)};
      Scale(data.data(), data.size(), type, 0.5);
      EXPECT_EQ(Value(data[0]), 0);
      EXPECT_EQ(Value(data[1]), IsFloating(type) ? 1.5 : 1) << NameOf(type);
      EXPECT_EQ(Value(data[2]), 50) << NameOf(type);
    });
  }
}

TEST(ScaleTest, SixteenBitFloats_GiveTheSameBitsWhateverTheirPlace) {
  std::mt19937 random(5);
  for (const DataType type : {DataType::kFloat16, DataType::kBfloat16}) {
    Dispatch(type, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      if constexpr (sizeof(T) == 2 && !std::is_integral_v<T>) {
        std::vector<T> together(1003);
        for (T& x : together) x.bits = static_cast<uint16_t>(random());
        std::vector<T> alone = together;
        Scale(together.data(), together.size(), type, 0.3);
        for (size_t i = 0; i < alone.size(); ++i) {
          Scale(&alone[i], 1, type, 0.3);
          const bool is_nan = std::isnan(Value(alone[i]));
          ASSERT_EQ(std::isnan(Value(together[i])), is_nan) << i;
          ASSERT_TRUE(is_nan || alone[i].bits == together[i].bits) << i;
        }
      }
    });
  }
}

TEST(ScaleTest, Integers_AreCutOffTowardsZeroAndStayInRange) {
  int32_t data[] = {-3, 3, std::numeric_limits<int32_t>::max()};
  Scale(data, 2, DataType::kInt32, 0.5);
  EXPECT_EQ(data[0], -1);
  Scale(data, 3, DataType::kInt32, 2.0);
  EXPECT_EQ(data[2], std::numeric_limits<int32_t>::max());
  int64_t large = std::numeric_limits<int64_t>::max();
  Scale(&large, 1, DataType::kInt64, 1.0);
  EXPECT_EQ(large, std::numeric_limits<int64_t>::max());
  uint8_t byte = 7;
  Scale(&byte, 1, DataType::kUint8, -1.0);
  EXPECT_EQ(byte, 0);
  Scale(&byte, 1, DataType::kUint8, std::nan(""));
  EXPECT_EQ(byte, 0);
}

TEST(ScaleTest, Bool_KeepsItsValueUnlessTheFactorIsZero) {
  uint8_t data[] = {1, 0};
  Scale(data, 2, DataType::kBool, 0.5);
  EXPECT_EQ(data[0], 1);
  Scale(data, 2, DataType::kBool, 0);
  EXPECT_EQ(data[0], 0);
}

}  // namespace
}  // namespace hvd::collectives
