// The two 16-bit floating point formats as types that convert to and from float. They have no
// arithmetic: callers compute in float.
#ifndef COLLECTIVES_FLOAT16_H_
#define COLLECTIVES_FLOAT16_H_

#include <cstdint>
#include <cstring>

namespace hvd::collectives {

namespace float16_internal {

inline uint32_t BitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

inline float FloatOf(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

}  // namespace float16_internal

// IEEE 754 binary16. Conversions from float round to nearest, ties to even; values that are too
// large become infinity, subnormals are kept, a NaN stays a NaN.
struct Float16 {
  uint16_t bits = 0;

  static Float16 FromFloat(float value) {
    using namespace float16_internal;  // NOLINT: two helper names
    const uint32_t f = BitsOf(value);
    const uint32_t sign = (f >> 16) & 0x8000u;
    const uint32_t magnitude = f & 0x7fffffffu;
    uint32_t result;
    if (magnitude > 0x7f800000u) {
      // A quiet NaN with the upper bits of the payload.
      result = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
    } else if (magnitude >= 0x47800000u) {
      // 65536 and above: infinity. Values between the largest half, 65504, and 65536 are rounded
      // by the next branch.
      result = 0x7c00u;
    } else if (magnitude >= 0x38800000u) {
      // Normal: changes the exponent's bias from 127 to 15, and adds just under half of the last
      // bit that is kept, or exactly half if that bit is 1: ties go to even. A carry into the
      // exponent is right: it rounds up to the next power of two.
      const uint32_t odd = (magnitude >> 13) & 1u;
      result = (magnitude - 0x38000000u + 0xfffu + odd) >> 13;
    } else {
      // Subnormal: in a float of magnitude 0.5 the last bit is worth 2^-24, which is the smallest
      // half. So the addition of 0.5 rounds to that precision.
      result = BitsOf(FloatOf(magnitude) + 0.5f) - 0x3f000000u;
    }
    return Float16{static_cast<uint16_t>(sign | result)};
  }

  float ToFloat() const {
    using namespace float16_internal;  // NOLINT: two helper names
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
    const uint32_t magnitude = bits & 0x7fffu;
    uint32_t result;
    if (magnitude >= 0x7c00u) {
      result = 0x7f800000u | ((magnitude & 0x3ffu) << 13);
      if (magnitude > 0x7c00u) result |= 0x00400000u;
    } else {
      // The multiplication by 2^112 corrects the exponent's bias and also normalises subnormals.
      result = BitsOf(FloatOf(magnitude << 13) * FloatOf(0x77800000u));
    }
    return FloatOf(sign | result);
  }
};
static_assert(sizeof(Float16) == 2, "Float16 is a wire format");

// The upper half of a float. Rounding, infinities and NaN as for Float16.
struct Bfloat16 {
  uint16_t bits = 0;

  static Bfloat16 FromFloat(float value) {
    const uint32_t f = float16_internal::BitsOf(value);
    const uint32_t rounded = (f + 0x7fffu + ((f >> 16) & 1u)) >> 16;
    const uint32_t quiet_nan = (f >> 16) | 0x40u;
    const bool is_nan = (f & 0x7fffffffu) > 0x7f800000u;
    return Bfloat16{static_cast<uint16_t>(is_nan ? quiet_nan : rounded)};
  }

  float ToFloat() const { return float16_internal::FloatOf(static_cast<uint32_t>(bits) << 16); }
};
static_assert(sizeof(Bfloat16) == 2, "Bfloat16 is a wire format");

}  // namespace hvd::collectives

#endif  // COLLECTIVES_FLOAT16_H_
