// The mapping between TensorFlow's element types and the runtime's.
#ifndef FRAMEWORKS_TENSORFLOW_ELEMENT_TYPES_H_
#define FRAMEWORKS_TENSORFLOW_ELEMENT_TYPES_H_

#include "frameworks/tensorflow/tensorflow_abi.h"
#include "worker_runtime/api/hvd_c_api.h"

namespace hvd::frameworks::tensorflow {

// The types that an operation's attribute allows: of reductions, and of operations that only move
// data. The latter also take types that the runtime lacks, as one of the same size.
inline constexpr char kReducedTypes[] =
    "{uint8, int8, int16, int32, int64, half, bfloat16, float, double, bool}";
inline constexpr char kMovedTypes[] =
    "{uint8, int8, uint16, int16, int32, int64, half, bfloat16, float, double, bool}";

// The runtime's type for a TensorFlowType; -1: it is not in kMovedTypes.
inline int RuntimeType(int type) {
  switch (type) {
    case kTfFloat:
      return HVD_FLOAT32;
    case kTfDouble:
      return HVD_FLOAT64;
    case kTfInt32:
      return HVD_INT32;
    case kTfUint8:
      return HVD_UINT8;
    case kTfInt16:
    case kTfUint16:  // only moved, never reduced
      return HVD_INT16;
    case kTfInt8:
      return HVD_INT8;
    case kTfInt64:
      return HVD_INT64;
    case kTfBool:
      return HVD_BOOL;
    case kTfBfloat16:
      return HVD_BFLOAT16;
    case kTfHalf:
      return HVD_FLOAT16;
    default:
      return -1;
  }
}

// The size of an element of a type in kMovedTypes.
inline size_t BytesOf(int type) {
  switch (type) {
    case kTfDouble:
    case kTfInt64:
      return 8;
    case kTfFloat:
    case kTfInt32:
      return 4;
    case kTfUint8:
    case kTfInt8:
    case kTfBool:
      return 1;
    default:
      return 2;
  }
}

}  // namespace hvd::frameworks::tensorflow

#endif  // FRAMEWORKS_TENSORFLOW_ELEMENT_TYPES_H_
