#include "collectives/reduce.h"

#include <cstdint>
#include <type_traits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "collectives/dispatch.h"

// Kernels are forced into wrappers that are compiled for one CPU each, so one body serves all of
// them.
#define HVD_ALWAYS_INLINE inline __attribute__((always_inline))

namespace hvd {
namespace {

// Per stored type: the type it is computed in, and the way there and back.
template <typename T>
struct Lane {
  using Compute = T;
  static HVD_ALWAYS_INLINE T Load(T value) { return value; }
  static HVD_ALWAYS_INLINE T Store(T value) { return value; }
};
template <typename T>
struct ThroughFloat {
  using Compute = float;
  static HVD_ALWAYS_INLINE float Load(T value) { return value.ToFloat(); }
  static HVD_ALWAYS_INLINE T Store(float value) { return T::FromFloat(value); }
};
template <>
struct Lane<Float16> : ThroughFloat<Float16> {};
template <>
struct Lane<Bfloat16> : ThroughFloat<Bfloat16> {};

// Signed overflow is undefined in C++, so integers are added and multiplied as unsigned ones, which
// wrap.
template <typename T>
using Wrapping = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                             std::common_type<T>>::type;

struct Sum {
  template <typename T>
  static HVD_ALWAYS_INLINE T Apply(T a, T b) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
  }
  static HVD_ALWAYS_INLINE BoolByte Apply(BoolByte a, BoolByte b) {
    return BoolByte{static_cast<uint8_t>((a.value | b.value) != 0)};
  }
};

struct Product {
  template <typename T>
  static HVD_ALWAYS_INLINE T Apply(T a, T b) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
  }
  static HVD_ALWAYS_INLINE BoolByte Apply(BoolByte a, BoolByte b) {
    return BoolByte{static_cast<uint8_t>((a.value != 0) & (b.value != 0))};
  }
};

// "b != b" is how a NaN on the right wins; one on the left wins because no comparison with it
// holds.
struct Min {
  template <typename T>
  static HVD_ALWAYS_INLINE T Apply(T a, T b) {
    return ((b < a) | (b != b)) ? b : a;  // NOLINT(misc-redundant-expression)
  }
  static HVD_ALWAYS_INLINE BoolByte Apply(BoolByte a, BoolByte b) { return Product::Apply(a, b); }
};

struct Max {
  template <typename T>
  static HVD_ALWAYS_INLINE T Apply(T a, T b) {
    return ((b > a) | (b != b)) ? b : a;  // NOLINT(misc-redundant-expression)
  }
  static HVD_ALWAYS_INLINE BoolByte Apply(BoolByte a, BoolByte b) { return Sum::Apply(a, b); }
};

template <typename T, typename Op>
HVD_ALWAYS_INLINE void Loop(void* out, const void* a, const void* b, size_t count) {
  using L = Lane<T>;
  T* o = static_cast<T*>(out);
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  for (size_t i = 0; i < count; ++i) {
    o[i] = L::Store(Op::Apply(L::Load(x[i]), L::Load(y[i])));
  }
}

template <typename T, typename Op>
void PortableKernel(void* out, const void* a, const void* b, size_t count) {
  Loop<T, Op>(out, a, b, count);
}

#if defined(__x86_64__)
#define HVD_AVX2 __attribute__((target("avx2,f16c")))

template <typename T, typename Op>
HVD_AVX2 void Avx2Kernel(void* out, const void* a, const void* b, size_t count) {
  size_t done = 0;
  if constexpr (std::is_same_v<T, Float16>) {
    // The compiler doesn't find the conversion instructions by itself: eight at a time by hand.
    for (; done + 8 <= count; done += 8) {
      const auto at = [done](const void* p) {
        return reinterpret_cast<const __m128i*>(static_cast<const Float16*>(p) + done);
      };
      alignas(32) float x[8], y[8], z[8];
      _mm256_store_ps(x, _mm256_cvtph_ps(_mm_loadu_si128(at(a))));
      _mm256_store_ps(y, _mm256_cvtph_ps(_mm_loadu_si128(at(b))));
      for (int i = 0; i < 8; ++i) z[i] = Op::Apply(x[i], y[i]);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(static_cast<Float16*>(out) + done),
                       _mm256_cvtps_ph(_mm256_load_ps(z), _MM_FROUND_TO_NEAREST_INT));
    }
  }
  Loop<T, Op>(static_cast<T*>(out) + done, static_cast<const T*>(a) + done,
              static_cast<const T*>(b) + done, count - done);
}

bool HasAvx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c"); }
#else
template <typename T, typename Op>
void Avx2Kernel(void* out, const void* a, const void* b, size_t count) {
  Loop<T, Op>(out, a, b, count);
}

bool HasAvx2() { return false; }
#endif

template <typename Op>
ReduceFunction Pick(DataType type, bool avx2) {
  return Dispatch(type, [avx2](auto tag) -> ReduceFunction {
    using T = typename decltype(tag)::Type;
    return avx2 ? &Avx2Kernel<T, Op> : &PortableKernel<T, Op>;
  });
}

ReduceFunction Pick(DataType type, ReduceOp op, bool avx2) {
  switch (op) {
    case ReduceOp::kSum:
      return Pick<Sum>(type, avx2);
    case ReduceOp::kMin:
      return Pick<Min>(type, avx2);
    case ReduceOp::kMax:
      return Pick<Max>(type, avx2);
    case ReduceOp::kProduct:
      break;
  }
  return Pick<Product>(type, avx2);
}

}  // namespace

ReduceFunction GetReduceFunction(DataType type, ReduceOp op) { return Pick(type, op, HasAvx2()); }

ReduceFunction GetPortableReduceFunction(DataType type, ReduceOp op) {
  return Pick(type, op, false);
}

}  // namespace hvd
