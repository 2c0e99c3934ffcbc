#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "collectives/dispatch.h"
#include "collectives/reduce.h"

namespace hvd {
namespace {

// The conversion of a double that the type can't hold is undefined in C++; here it gives the
// nearest value, NaN gives 0.
template <typename T>
T Truncate(double value) {
  // 2^digits is exact as a double, while max() itself may not be.
  constexpr double kEnd =
      2.0 * static_cast<double>(uint64_t{1} << (std::numeric_limits<T>::digits - 1));
  if (value >= kEnd) return std::numeric_limits<T>::max();
  if (value <= static_cast<double>(std::numeric_limits<T>::min())) {
    return std::numeric_limits<T>::min();
  }
  return value == value ? static_cast<T>(value) : T{0};
}

template <typename T>
void ScaleAll(T* data, size_t count, double factor) {
  if constexpr (std::is_same_v<T, BoolByte>) {
    if (factor == 0) std::fill_n(data, count, BoolByte{});
  } else if constexpr (std::is_integral_v<T>) {
    for (size_t i = 0; i < count; ++i) data[i] = Truncate<T>(static_cast<double>(data[i]) * factor);
  } else if constexpr (std::is_floating_point_v<T>) {
    const T by = static_cast<T>(factor);
    for (size_t i = 0; i < count; ++i) data[i] *= by;
  } else {
    const float by = static_cast<float>(factor);
    for (size_t i = 0; i < count; ++i) data[i] = T::FromFloat(data[i].ToFloat() * by);
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

}  // namespace hvd
