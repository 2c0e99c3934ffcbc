#include "collectives/float16.h"

#include <cmath>
#include <cstdint>
#include <limits>

#include "gtest/gtest.h"

namespace hvd::collectives {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// The value of the bit pattern, by the format's definition.
double Meaning(uint16_t bits, int exponent_bits, int mantissa_bits) {
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const int exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const double sign = (bits & 0x8000) ? -1.0 : 1.0;
  if (exponent == (1 << exponent_bits) - 1) return mantissa ? std::nan("") : sign * kInf;
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

template <typename T>
void ExpectEveryPatternToMeanWhatTheFormatSays(int exponent_bits, int mantissa_bits) {
  for (int i = 0; i < 0x10000; ++i) {
    const T value{static_cast<uint16_t>(i)};
    const double meaning = Meaning(value.bits, exponent_bits, mantissa_bits);
    if (std::isnan(meaning)) {
      ASSERT_TRUE(std::isnan(value.ToFloat())) << i;
      ASSERT_TRUE(std::isnan(T::FromFloat(value.ToFloat()).ToFloat())) << i;
    } else {
      ASSERT_EQ(value.ToFloat(), meaning) << i;
      ASSERT_EQ(T::FromFloat(value.ToFloat()).bits, value.bits) << i;
    }
  }
}

// For any two adjacent values: the middle is rounded to the even one, other values to the nearer
// one.
template <typename T>
void ExpectRoundingToNearestEven(uint16_t largest_finite) {
  for (uint16_t low = 0; low < largest_finite; ++low) {
    const float a = T{low}.ToFloat();
    const float b = T{static_cast<uint16_t>(low + 1)}.ToFloat();
    const float middle = a + (b - a) / 2;
    const uint16_t even = low % 2 == 0 ? low : low + 1;
    ASSERT_EQ(T::FromFloat(middle).bits, even) << low;
    ASSERT_EQ(T::FromFloat(std::nextafter(middle, -kInf)).bits, low);
    ASSERT_EQ(T::FromFloat(std::nextafter(middle, kInf)).bits, low + 1);
    ASSERT_EQ(T::FromFloat(-middle).bits, 0x8000 | even);
  }
}

TEST(Float16Test, EveryBitPattern_MeansWhatTheFormatSays) {
  ExpectEveryPatternToMeanWhatTheFormatSays<Float16>(5, 10);
}

TEST(Bfloat16Test, EveryBitPattern_MeansWhatTheFormatSays) {
  ExpectEveryPatternToMeanWhatTheFormatSays<Bfloat16>(8, 7);
}

TEST(Float16Test, FromFloat_RoundsToNearestEven) { ExpectRoundingToNearestEven<Float16>(0x7bff); }

TEST(Bfloat16Test, FromFloat_RoundsToNearestEven) { ExpectRoundingToNearestEven<Bfloat16>(0x7f7f); }

TEST(Float16Test, FromFloat_TooLarge_IsInfinity) {
  EXPECT_EQ(Float16::FromFloat(65504.0f).bits, 0x7bff);
  EXPECT_EQ(Float16::FromFloat(65519.99f).bits, 0x7bff);
  EXPECT_EQ(Float16::FromFloat(65520.0f).bits, 0x7c00);
  EXPECT_EQ(Float16::FromFloat(-1e30f).bits, 0xfc00);
  EXPECT_EQ(Float16::FromFloat(-kInf).bits, 0xfc00);
  EXPECT_EQ(Bfloat16::FromFloat(std::numeric_limits<float>::max()).bits, 0x7f80);
}

TEST(Float16Test, FromFloat_TooSmall_IsSignedZero) {
  EXPECT_EQ(Float16::FromFloat(std::ldexp(1.0f, -25)).bits, 0x0000);
  EXPECT_EQ(Float16::FromFloat(std::ldexp(-1.1f, -25)).bits, 0x8001);
  EXPECT_EQ(Float16::FromFloat(-1e-30f).bits, 0x8000);
}

TEST(Float16Test, FromFloat_NanWhosePayloadIsCutOffStaysNan) {
  const float nan = float16_internal::FloatOf(0x7f800001u);
  EXPECT_TRUE(std::isnan(Float16::FromFloat(nan).ToFloat()));
  EXPECT_TRUE(std::isnan(Bfloat16::FromFloat(nan).ToFloat()));
}

}  // namespace
}  // namespace hvd::collectives
