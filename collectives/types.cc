#include "collectives/types.h"

#include "absl/strings/str_cat.h"
#include "collectives/type_dispatch.h"

namespace hvd::collectives {

size_t SizeOf(DataType type) {
  return Dispatch(type, [](auto tag) { return sizeof(typename decltype(tag)::Type); });
}

absl::string_view NameOf(DataType type) {
  switch (type) {
    case DataType::kUint8:
      return "uint8";
    case DataType::kInt8:
      return "int8";
    case DataType::kInt16:
      return "int16";
    case DataType::kInt32:
      return "int32";
    case DataType::kInt64:
      return "int64";
    case DataType::kFloat16:
      return "float16";
    case DataType::kBfloat16:
      return "bfloat16";
    case DataType::kFloat32:
      return "float32";
    case DataType::kFloat64:
      return "float64";
    case DataType::kBool:
      return "bool";
  }
  return "unknown type";
}

absl::string_view NameOf(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return "sum";
    case ReduceOp::kMin:
      return "min";
    case ReduceOp::kMax:
      return "max";
    case ReduceOp::kProduct:
      return "product";
  }
  return "unknown operation";
}

bool IsFloating(DataType type) {
  return type == DataType::kFloat16 || type == DataType::kBfloat16 || type == DataType::kFloat32 ||
         type == DataType::kFloat64;
}

absl::Status CheckRank(const GroupInfo& group) {
  if (group.size >= 1 && group.rank >= 0 && group.rank < group.size) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("there is no rank ", group.rank, " of ", group.size));
}

}  // namespace hvd::collectives
