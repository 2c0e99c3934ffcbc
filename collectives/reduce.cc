#include "collectives/reduce.h"

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "collectives/float16_lanes.h"
#include "collectives/type_dispatch.h"

namespace hvd::collectives {
namespace {

// For each stored type: the type in which it is computed, and the conversions to it and back.
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

// Integers are added and multiplied as unsigned types, which wrap around: signed overflow is
// undefined in C++.
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

// The result is NaN if either operand is: "b != b" selects `b` if it is NaN; if `a` is NaN, all
// comparisons are false, which selects `a`. The operators are not short-circuit ("|", not "||"), so
// that the loop can be vectorised.
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
    // `out` may be one of the inputs: each element is read before it is written.
    o[i] = L::Store(Op::Apply(L::Load(x[i]), L::Load(y[i])));
  }
}

template <typename T, typename Op>
void PortableKernel(void* out, const void* a, const void* b, size_t count) {
  Loop<T, Op>(out, a, b, count);
}

// Reduces all sources element by element, in the computing type, and rounds only once, at the end.
template <typename T, typename Op>
HVD_ALWAYS_INLINE void LoopOverAll(void* out, absl::Span<const void* const> sources, size_t begin,
                                   size_t count) {
  using L = Lane<T>;
  for (size_t i = begin; i < count; ++i) {
    const auto at = [&](const void* source) { return L::Load(static_cast<const T*>(source)[i]); };
    typename L::Compute value = at(sources[0]);
    for (const void* source : sources.subspan(1)) value = Op::Apply(value, at(source));
    static_cast<T*>(out)[i] = L::Store(value);
  }
}

template <typename T, typename Op>
void PortableReduceAll(void* out, absl::Span<const void* const> sources, size_t count) {
  LoopOverAll<T, Op>(out, sources, 0, count);
}

template <typename T>
constexpr bool kIsFloat16 = std::is_same_v<T, Float16> || std::is_same_v<T, Bfloat16>;

#if defined(__x86_64__)
// kLanes converted elements as an array, so that Op's scalar code applies to them and the compiler
// vectorises the loop.
struct LaneArray {
  alignas(32) float values[kLanes];

  template <typename T>
  HVD_AVX2 HVD_ALWAYS_INLINE explicit LaneArray(const T* from) {
    const Lanes lanes = LoadLanes(from);
    _mm256_store_ps(values, lanes.first);
    _mm256_store_ps(values + kLanes / 2, lanes.second);
  }
  template <typename T>
  HVD_AVX2 HVD_ALWAYS_INLINE void Store(T* to) const {
    StoreLanes(to, {_mm256_load_ps(values), _mm256_load_ps(values + kLanes / 2)});
  }
  template <typename Op>
  HVD_AVX2 HVD_ALWAYS_INLINE void Apply(const LaneArray& other) {
    for (int i = 0; i < kLanes; ++i) values[i] = Op::Apply(values[i], other.values[i]);
  }
};

template <typename T, typename Op>
HVD_AVX2 void Avx2Kernel(void* out, const void* a, const void* b, size_t count) {
  T* const o = static_cast<T*>(out);
  const T* const x = static_cast<const T*>(a);
  const T* const y = static_cast<const T*>(b);
  size_t done = 0;
  if constexpr (kIsFloat16<T>) {
    for (; done + kLanes <= count; done += kLanes) {
      LaneArray value(x + done);
      value.template Apply<Op>(LaneArray(y + done));
      value.Store(o + done);
    }
  }
  Loop<T, Op>(o + done, x + done, y + done, count - done);
}

template <typename T, typename Op>
HVD_AVX2 void Avx2ReduceAll(void* out, absl::Span<const void* const> sources, size_t count) {
  size_t done = 0;
  for (; done + kLanes <= count; done += kLanes) {
    LaneArray value(static_cast<const T*>(sources[0]) + done);
    for (size_t s = 1; s < sources.size(); ++s) {
      value.template Apply<Op>(LaneArray(static_cast<const T*>(sources[s]) + done));
    }
    value.Store(static_cast<T*>(out) + done);
  }
  LoopOverAll<T, Op>(out, sources, done, count);
}
#else
bool HasAvx2() { return false; }

template <typename T, typename Op>
void Avx2Kernel(void* out, const void* a, const void* b, size_t count) {
  Loop<T, Op>(out, a, b, count);
}

template <typename T, typename Op>
void Avx2ReduceAll(void* out, absl::Span<const void* const> sources, size_t count) {
  LoopOverAll<T, Op>(out, sources, 0, count);
}
#endif

// Calls function(Sum()), function(Min()), function(Max()) or function(Product()).
template <typename Function>
auto DispatchOp(ReduceOp op, Function function) {
  switch (op) {
    case ReduceOp::kSum:
      return function(Sum());
    case ReduceOp::kMin:
      return function(Min());
    case ReduceOp::kMax:
      return function(Max());
    case ReduceOp::kProduct:
      break;
  }
  return function(Product());
}

ReduceFunction Pick(DataType type, ReduceOp op, bool avx2) {
  return Dispatch(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return DispatchOp(op, [&](auto operation) -> ReduceFunction {
      using Op = decltype(operation);
      return avx2 ? &Avx2Kernel<T, Op> : &PortableKernel<T, Op>;
    });
  });
}

using ReduceAllFunction = void (*)(void* out, absl::Span<const void* const> sources, size_t count);

ReduceAllFunction PickForFloat16(DataType type, ReduceOp op, bool avx2) {
  return DispatchOp(op, [&](auto operation) -> ReduceAllFunction {
    using Op = decltype(operation);
    if (type == DataType::kFloat16) {
      return avx2 ? &Avx2ReduceAll<Float16, Op> : &PortableReduceAll<Float16, Op>;
    }
    return avx2 ? &Avx2ReduceAll<Bfloat16, Op> : &PortableReduceAll<Bfloat16, Op>;
  });
}

}  // namespace

ReduceFunction GetReduceFunction(DataType type, ReduceOp op) { return Pick(type, op, HasAvx2()); }

ReduceFunction GetPortableReduceFunction(DataType type, ReduceOp op) {
  return Pick(type, op, false);
}

Reducer::Reducer(DataType type, ReduceOp op, bool portable)
    : element_bytes_(SizeOf(type)), pair_(Pick(type, op, !portable && HasAvx2())) {
  const bool is_float16 = type == DataType::kFloat16 || type == DataType::kBfloat16;
  // Only these types lose bits when an intermediate result is stored.
  if (is_float16) all_ = PickForFloat16(type, op, !portable && HasAvx2());
}

void Reducer::operator()(void* out, absl::Span<const void* const> sources, size_t count) const {
  if (sources.size() == 2) return pair_(out, sources[0], sources[1], count);
  if (all_ != nullptr) return all_(out, sources, count);
  // Other types lose nothing when intermediate results are stored, so the pairwise kernel serves
  // for any number of sources. It works in steps whose intermediate results stay in the L1 cache.
  constexpr size_t kStepBytes = 8 << 10;
  const size_t step = kStepBytes / element_bytes_;
  for (size_t begin = 0; begin < count; begin += step) {
    const size_t offset = begin * element_bytes_, now = std::min(step, count - begin);
    const auto at = [&](const void* source) { return static_cast<const char*>(source) + offset; };
    char* const to = static_cast<char*>(out) + offset;
    const char* so_far = at(sources[0]);
    for (const void* source : sources.subspan(1)) {
      pair_(to, so_far, at(source), now);
      so_far = to;
    }
  }
}

}  // namespace hvd::collectives
