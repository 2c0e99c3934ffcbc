#include "tests/gpu/simulated/nccl/reduce.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace simulated_gpu {
namespace {

// As in NCCL, each step is rounded to the type.
class Bfloat16 {
 public:
  Bfloat16() = default;
  Bfloat16(float value) {  // NOLINT(runtime/explicit): arithmetic is float's
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    const bool is_nan = value != value;
    bits_ = static_cast<uint16_t>(is_nan ? 0x7fc0 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
  operator float() const {  // NOLINT(runtime/explicit)
    const uint32_t bits = static_cast<uint32_t>(bits_) << 16;
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  }

 private:
  uint16_t bits_ = 0;
};

template <typename T>
struct Tag {
  using Type = T;
};

// Calls `use` with the Tag of the type.
template <typename Use>
void WithType(NcclType type, Use use) {
  switch (type) {
    case NcclType::kInt8:
      return use(Tag<int8_t>());
    case NcclType::kUint8:
      return use(Tag<uint8_t>());
    case NcclType::kInt32:
      return use(Tag<int32_t>());
    case NcclType::kUint32:
      return use(Tag<uint32_t>());
    case NcclType::kInt64:
      return use(Tag<int64_t>());
    case NcclType::kUint64:
      return use(Tag<uint64_t>());
    case NcclType::kFloat16:
      return use(Tag<_Float16>());
    case NcclType::kFloat32:
      return use(Tag<float>());
    case NcclType::kFloat64:
      return use(Tag<double>());
    case NcclType::kBfloat16:
      return use(Tag<Bfloat16>());
  }
}

template <typename T, typename F>
void ForEach(T* into, const T* from, size_t count, F&& f) {
  for (size_t i = 0; i < count; ++i) into[i] = f(into[i], from[i]);
}

template <typename T>
void CombineAs(T* into, const T* from, size_t count, NcclOp op) {
  switch (op) {
    case NcclOp::kProduct:
      return ForEach(into, from, count, [](T a, T b) { return static_cast<T>(a * b); });
    case NcclOp::kMax:
      return ForEach(into, from, count, [](T a, T b) { return a < b ? b : a; });
    case NcclOp::kMin:
      return ForEach(into, from, count, [](T a, T b) { return b < a ? b : a; });
    case NcclOp::kSum:
    case NcclOp::kAverage:
      break;
  }
  // Sums of integers wrap around.
  ForEach(into, from, count, [](T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      using Unsigned = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
    } else {
      return static_cast<T>(a + b);
    }
  });
}

}  // namespace

size_t SizeOf(NcclType type) {
  size_t size = 0;
  WithType(type, [&](auto tag) { size = sizeof(typename decltype(tag)::Type); });
  return size;
}

void Combine(void* into, const void* from, size_t count, NcclType type, NcclOp op) {
  WithType(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    CombineAs(static_cast<T*>(into), static_cast<const T*>(from), count, op);
  });
}

void Divide(void* values, size_t count, NcclType type, int ranks) {
  WithType(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    T* const all = static_cast<T*>(values);
    for (size_t i = 0; i < count; ++i) all[i] = static_cast<T>(all[i] / static_cast<T>(ranks));
  });
}

void Multiply(void* to, const void* from, size_t count, NcclType type, const void* factor) {
  WithType(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    T by;
    std::memcpy(&by, factor, sizeof(by));
    const T* const all = static_cast<const T*>(from);
    for (size_t i = 0; i < count; ++i) static_cast<T*>(to)[i] = static_cast<T>(all[i] * by);
  });
}

}  // namespace simulated_gpu
