// The mapping of a DataType to the C++ type that stores it: the only switch over element types.
#ifndef COLLECTIVES_TYPE_DISPATCH_H_
#define COLLECTIVES_TYPE_DISPATCH_H_

#include <cstdint>
#include <utility>

#include "collectives/float16.h"
#include "collectives/types.h"

namespace hvd::collectives {

// The representation of a bool: one byte, 0 is false, everything else is true; results are 0 or 1.
// (A C++ bool with any other value is undefined behaviour, and a user's tensor may hold any byte.)
struct BoolByte {
  uint8_t value = 0;
};

// A type as a value.
template <typename T>
struct TypeTag {
  using Type = T;
};

// Calls f(TypeTag<T>()) with T = uint8_t ... double, Float16, Bfloat16 or BoolByte, and returns its
// result, which must have the same type for all.
template <typename F>
auto Dispatch(DataType type, F&& f) {
  switch (type) {
    case DataType::kUint8:
      return f(TypeTag<uint8_t>());
    case DataType::kInt8:
      return f(TypeTag<int8_t>());
    case DataType::kInt16:
      return f(TypeTag<int16_t>());
    case DataType::kInt32:
      return f(TypeTag<int32_t>());
    case DataType::kInt64:
      return f(TypeTag<int64_t>());
    case DataType::kFloat16:
      return f(TypeTag<Float16>());
    case DataType::kBfloat16:
      return f(TypeTag<Bfloat16>());
    case DataType::kFloat32:
      return f(TypeTag<float>());
    case DataType::kFloat64:
      return f(TypeTag<double>());
    case DataType::kBool:
      break;
  }
  return f(TypeTag<BoolByte>());
}

}  // namespace hvd::collectives

#endif  // COLLECTIVES_TYPE_DISPATCH_H_
