#include "collectives/scale.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "collectives/float16_lanes.h"
#include "collectives/type_dispatch.h"

namespace hvd::collectives {
namespace {

// Converts to T, truncating towards zero. C++ leaves the conversion undefined for values that T
// can't hold; here they give the nearest value of T, and NaN gives 0.
template <typename T>
T Truncate(double value) {
  // The end of the range, 2^digits, is exact as a double, while max() = 2^digits - 1 may not be.
  constexpr double kEnd =
      2.0 * static_cast<double>(uint64_t{1} << (std::numeric_limits<T>::digits - 1));
  if (value >= kEnd) return std::numeric_limits<T>::max();
  if (value <= static_cast<double>(std::numeric_limits<T>::min())) {
    return std::numeric_limits<T>::min();
  }
  return value == value ? static_cast<T>(value) : T{0};
}

#if defined(__x86_64__)
// Scales whole groups of kLanes elements; returns the number of elements that it has scaled.
template <typename T>
HVD_AVX2 size_t ScaleLanes(T* data, size_t count, float factor) {
  size_t done = 0;
  for (; done + kLanes <= count; done += kLanes) {
    const Lanes lanes = LoadLanes(data + done);
    const __m256 by = _mm256_set1_ps(factor);
    StoreLanes(data + done, {_mm256_mul_ps(lanes.first, by), _mm256_mul_ps(lanes.second, by)});
  }
  return done;
}
#endif

template <typename T>
void ScaleFloat16(T* data, size_t count, float factor) {
  size_t done = 0;
#if defined(__x86_64__)
  if (HasAvx2()) done = ScaleLanes(data, count, factor);
#endif
  for (; done < count; ++done) data[done] = T::FromFloat(data[done].ToFloat() * factor);
}

template <typename T>
void ScaleAll(T* data, size_t count, double factor) {
  if constexpr (std::is_same_v<T, BoolByte>) {
    // A bool times anything else but 0 stays what it is.
    if (factor == 0) std::fill_n(data, count, BoolByte{});
  } else if constexpr (std::is_integral_v<T>) {
    for (size_t i = 0; i < count; ++i) data[i] = Truncate<T>(static_cast<double>(data[i]) * factor);
  } else if constexpr (std::is_floating_point_v<T>) {
    // Converted once: in float, not in double, so that the loop has the width of the data.
    const T by = static_cast<T>(factor);
    for (size_t i = 0; i < count; ++i) data[i] *= by;
  } else {
    ScaleFloat16(data, count, static_cast<float>(factor));
  }
}

}  // namespace

void Scale(void* data, size_t count, DataType type, double factor) {
  if (count == 0) return;
  Dispatch(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    ScaleAll(static_cast<T*>(data), count, factor);
  });
}

}  // namespace hvd::collectives
