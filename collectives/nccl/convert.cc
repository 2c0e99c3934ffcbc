#include "collectives/nccl/convert.h"

#include <cstring>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "collectives/type_dispatch.h"

namespace hvd::collectives::nccl {
namespace {

std::optional<NcclType> ToNccl(DataType type) {
  switch (type) {
    case DataType::kUint8:
    case DataType::kBool:
      return NcclType::kUint8;
    case DataType::kInt8:
      return NcclType::kInt8;
    // NCCL has no 16-bit integers; they are reduced on the host.
    case DataType::kInt16:
      return std::nullopt;
    case DataType::kInt32:
      return NcclType::kInt32;
    case DataType::kInt64:
      return NcclType::kInt64;
    case DataType::kFloat16:
      return NcclType::kFloat16;
    case DataType::kBfloat16:
      return NcclType::kBfloat16;
    case DataType::kFloat32:
      return NcclType::kFloat32;
    case DataType::kFloat64:
      return NcclType::kFloat64;
  }
  return std::nullopt;
}

NcclOp ToNccl(ReduceOp op, bool logical) {
  switch (op) {
    case ReduceOp::kSum:
      // A bool is a byte that is 0 or 1. "Or" is then the maximum, and "and" the minimum; a sum
      // could give 2.
      return logical ? NcclOp::kMax : NcclOp::kSum;
    case ReduceOp::kMin:
      return NcclOp::kMin;
    case ReduceOp::kMax:
      return NcclOp::kMax;
    case ReduceOp::kProduct:
      break;
  }
  return logical ? NcclOp::kMin : NcclOp::kProduct;
}

}  // namespace

std::optional<NcclReduction> ToNccl(DataType type, ReduceOp op) {
  const std::optional<NcclType> nccl_type = ToNccl(type);
  if (!nccl_type.has_value()) return std::nullopt;
  return NcclReduction{*nccl_type, ToNccl(op, type == DataType::kBool)};
}

NcclFactor ToNcclFactor(DataType type, double factor) {
  return Dispatch(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    NcclFactor result;
    // NCCL reads the factor as one element of the tensor's type: the bytes of a double would be
    // another number.
    if constexpr (std::is_floating_point_v<T>) {
      const T value = static_cast<T>(factor);
      std::memcpy(result.bytes, &value, sizeof(value));
    } else if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, Bfloat16>) {
      const T value = T::FromFloat(static_cast<float>(factor));
      std::memcpy(result.bytes, &value, sizeof(value));
    }
    return result;
  });
}

absl::Status FromNccl(NcclResult result, absl::string_view what, absl::string_view text,
                      absl::string_view detail) {
  if (!IsError(result)) return absl::OkStatus();
  std::string message = absl::StrCat(what, ": ", text);
  if (!detail.empty()) absl::StrAppend(&message, " (", detail, ")");
  // The failure of a peer, or of the network to it; NCCL does not tell them apart.
  if (result == NcclResult::kRemoteError || result == NcclResult::kSystemError) {
    return absl::UnavailableError(message);
  }
  if (result == NcclResult::kTimeout) return absl::DeadlineExceededError(message);
  return absl::InternalError(message);
}

absl::Status FromCuda(const CudaFunctions& cuda, CudaResult result, absl::string_view what) {
  if (result == CudaResult::kSuccess) return absl::OkStatus();
  // The driver leaves it null for a code that it does not know.
  const char* text = nullptr;
  cuda.get_error_string(result, &text);
  const std::string message = absl::StrCat(what, ": CUDA error ", static_cast<int>(result), ", ",
                                           text == nullptr ? "unknown" : text);
  if (result == CudaResult::kOutOfMemory) return absl::ResourceExhaustedError(message);
  return absl::InternalError(message);
}

}  // namespace hvd::collectives::nccl
