// SIMD conversions of sixteen 16-bit floats at a time, for CPUs with AVX2 and F16C. Compilers don't
// vectorise the conversions of float16.h. The results are bitwise equal to those, except for the
// payload of a NaN.
#ifndef COLLECTIVES_FLOAT16_LANES_H_
#define COLLECTIVES_FLOAT16_LANES_H_

#include "collectives/float16.h"

// A function must be inlined into its caller to be compiled for the caller's target CPU.
#define HVD_ALWAYS_INLINE inline __attribute__((always_inline))

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

#define HVD_AVX2 __attribute__((target("avx2,f16c")))

namespace hvd::collectives {

inline constexpr int kLanes = 16;

// kLanes elements as float. Their order differs between the two types: it is the fastest for each.
struct Lanes {
  __m256 first, second;
};

inline bool HasAvx2() {
  // clang 14's __builtin_cpu_supports does not know F16C.
  static const bool has_both = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    const bool has_f16c = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
    return has_f16c && __builtin_cpu_supports("avx2");
  }();
  return has_both;
}

// The functions below read or write kLanes elements.
// REQUIRES, for all of them: HasAvx2().

HVD_AVX2 HVD_ALWAYS_INLINE Lanes LoadLanes(const Float16* from) {
  const __m128i* const at = reinterpret_cast<const __m128i*>(from);
  return {_mm256_cvtph_ps(_mm_loadu_si128(at)), _mm256_cvtph_ps(_mm_loadu_si128(at + 1))};
}

HVD_AVX2 HVD_ALWAYS_INLINE void StoreLanes(Float16* to, const Lanes& values) {
  __m128i* const at = reinterpret_cast<__m128i*>(to);
  _mm_storeu_si128(at, _mm256_cvtps_ph(values.first, _MM_FROUND_TO_NEAREST_INT));
  _mm_storeu_si128(at + 1, _mm256_cvtps_ph(values.second, _MM_FROUND_TO_NEAREST_INT));
}

// Loads the elements with even indices into `first`, those with odd indices into `second`: each
// pair is one 32-bit word, with the odd element in its upper half.
HVD_AVX2 HVD_ALWAYS_INLINE Lanes LoadLanes(const Bfloat16* from) {
  const __m256i both = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  const __m256i upper = _mm256_set1_epi32(static_cast<int>(0xffff0000));
  return {_mm256_castsi256_ps(_mm256_slli_epi32(both, 16)),
          _mm256_castsi256_ps(_mm256_and_si256(both, upper))};
}

// Rounds to bfloat16. The results are in the upper halves of the 32-bit words; the lower halves are
// unspecified.
HVD_AVX2 HVD_ALWAYS_INLINE __m256i RoundToUpperHalf(__m256 values) {
  const __m256i bits = _mm256_castps_si256(values);
  // To nearest, ties to even: adds just under half of the last bit that is kept, or exactly half if
  // that bit is 1.
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
  const __m256i quiet_nan = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(values, values, _CMP_UNORD_Q));
  return _mm256_blendv_epi8(rounded, quiet_nan, is_nan);
}

HVD_AVX2 HVD_ALWAYS_INLINE void StoreLanes(Bfloat16* to, const Lanes& values) {
  const __m256i even = _mm256_srli_epi32(RoundToUpperHalf(values.first), 16);
  constexpr int kOddHalves = 0xaa;
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                      _mm256_blend_epi16(even, RoundToUpperHalf(values.second), kOddHalves));
}

}  // namespace hvd::collectives
#endif

#endif  // COLLECTIVES_FLOAT16_LANES_H_
