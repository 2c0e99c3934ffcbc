#include "worker_runtime/engine/request.h"

#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace hvd::worker_runtime::engine {
namespace {

using negotiation::OpTrait;

absl::Status Bad(const negotiation::TensorSignature& request, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat(negotiation::NameOf(request.op), " of '", request.name, "': ", why));
}

absl::Status CheckKinds(const negotiation::TensorSignature& request) {
  auto exists = [](auto kind, int count) {
    return static_cast<int>(kind) >= 0 && static_cast<int>(kind) < count;
  };
  if (request.name.empty()) return absl::InvalidArgumentError("a request needs a name");
  if (request.name.size() > kMostNameBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a name of ", request.name.size(), " bytes is too long: the limit is ", kMostNameBytes));
  }
  if (!exists(request.op, negotiation::kOpKindCount)) return Bad(request, "no such operation");
  if (!exists(request.type, collectives::kDataTypeCount)) return Bad(request, "no such data type");
  if (!exists(request.reduction, negotiation::kReductionCount))
    return Bad(request, "no such reduction");
  if (!negotiation::IsSaneShape(request.shape, request.type)) {
    return Bad(request, absl::StrCat("impossible shape ", negotiation::ShapeText(request.shape)));
  }
  // A NaN is not equal to itself, so such a request would never match that of another rank.
  if (std::isnan(request.prescale) || std::isnan(request.postscale)) {
    return Bad(request, "a scale factor is not a number");
  }
  return absl::OkStatus();
}

absl::Status CheckSplits(const negotiation::TensorSignature& request, int size) {
  // A scalar is reported by FindMismatch, as one error on all ranks: if it failed here, the other
  // ranks would wait for this one.
  if (request.shape.empty()) return absl::OkStatus();
  const int64_t rows = request.shape.front();
  if (request.splits.empty()) {
    if (rows % size != 0) {
      return Bad(request, absl::StrCat("the first dimension, ", rows,
                                       ", can't be split evenly among ", size, " ranks"));
    }
    // Splits are sent as 32-bit numbers.
    if (rows / size <= std::numeric_limits<int32_t>::max()) return absl::OkStatus();
    return Bad(request, absl::StrCat("the first dimension, ", rows, ", is too long for ", size,
                                     size == 1 ? " rank" : " ranks",
                                     ": a rank can be sent 2147483647 rows"));
  }
  if (request.splits.size() != static_cast<size_t>(size)) {
    return Bad(request,
               absl::StrCat("there are ", request.splits.size(), " splits for ", size, " ranks"));
  }
  int64_t sum = 0;
  for (int32_t split : request.splits) {
    if (split < 0) return Bad(request, "a split is negative");
    sum += split;
  }
  if (sum <= rows) return absl::OkStatus();
  return Bad(request, absl::StrCat("the splits sum up to ", sum,
                                   ", but the first dimension is only ", rows));
}

absl::Status CheckReduction(const negotiation::TensorSignature& request) {
  if (request.reduction != negotiation::Reduction::kAdasum) return absl::OkStatus();
  if (!Has(request.op, OpTrait::kTakesAdasum)) return Bad(request, "Adasum is for allreduce only");
  if (!collectives::IsFloating(request.type))
    return Bad(request, "Adasum needs floating-point tensors");
  return absl::OkStatus();
}

absl::Status CheckDevice(const negotiation::TensorSignature& request, const TensorMemory& memory) {
  // The peers see only on_device; the executor uses the device. They must not contradict each
  // other.
  if (request.on_device != (memory.device != kHostMemory) || memory.device < kHostMemory) {
    return Bad(request, "no such device");
  }
  if (!request.on_device) return absl::OkStatus();
  if (!Has(request.op, OpTrait::kCarriesData))
    return Bad(request, "it has no tensor, so it can't name a device");
  const bool needs_output = Has(request.op, OpTrait::kKeepsShape);
  if (needs_output && memory.output == nullptr && negotiation::ElementCount(request.shape) > 0) {
    return Bad(request, "a tensor on a device needs an output");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckRequest(const negotiation::TensorSignature& request, const TensorMemory& memory,
                          int size) {
  RETURN_IF_ERROR(CheckKinds(request));
  // For all operations: the root rank of every request is sent, and peers check it
  // (DecodeSignature).
  if (request.root_rank < 0 || request.root_rank >= size) {
    return Bad(request,
               absl::StrCat("invalid root rank ", request.root_rank, " in a world of ", size));
  }
  if (Has(request.op, OpTrait::kHasSplits)) RETURN_IF_ERROR(CheckSplits(request, size));
  if (Has(request.op, OpTrait::kDividesRows) && request.shape.empty()) {
    return Bad(request, "scalars can't be scattered");
  }
  if (Has(request.op, OpTrait::kReduces)) RETURN_IF_ERROR(CheckReduction(request));
  RETURN_IF_ERROR(CheckDevice(request, memory));
  if (Has(request.op, OpTrait::kNeedsInput) && memory.input == nullptr &&
      negotiation::ElementCount(request.shape) > 0) {
    return Bad(request, "there is no input");
  }
  return absl::OkStatus();
}

void SplitRequests(std::vector<TensorRequest> requests,
                   std::vector<negotiation::SignaturePtr>& signatures,
                   std::vector<TensorMemory>& memory) {
  for (TensorRequest& request : requests) {
    memory.push_back(request);
    signatures.push_back(std::make_shared<const negotiation::TensorSignature>(std::move(request)));
  }
}

}  // namespace hvd::worker_runtime::engine
