// Fuzz target: plans that were changed on the way to a rank. What passes the check must not make
// the executors leave the memory of this rank's tensors.
#include <memory>
#include <utility>
#include <vector>

#include "tests/support/fuzzing.h"
#include "worker_runtime/engine/batch_check.h"
#include "worker_runtime/negotiation/message_codec.h"

namespace hvd::worker_runtime::engine {
namespace {

using negotiation::OpKind;
using negotiation::TensorSignature;
constexpr int kRank = 1;
constexpr int kRanks = 3;

std::optional<OperationTensor> OwnRequest(InputParts& parts) {
  const uint8_t choice = parts.Byte();
  if (choice & 128) return std::nullopt;
  TensorSignature signature;
  signature.name = "x";
  signature.op = static_cast<OpKind>(choice % 5);
  signature.type = static_cast<collectives::DataType>(parts.Byte() % collectives::kDataTypeCount);
  for (int dims = choice / 8 % 4; dims > 0; --dims) signature.shape.push_back(parts.Byte() % 8);
  if (signature.op == OpKind::kAllToAll && !signature.shape.empty() && (choice & 64)) {
    signature.splits = {static_cast<int32_t>(signature.shape[0]), 0, 0};
  }
  auto operation = std::make_shared<Operation>();
  operation->signatures = {std::make_shared<const TensorSignature>(std::move(signature))};
  return OperationTensor{std::move(operation), 0};
}

void CheckPart(const negotiation::PlannedTensor& planned, const OperationTensor& part) {
  const TensorSignature& own = part.signature();
  const TensorSignature& theirs = *planned.signature;
  Require(own.op == theirs.op && own.type == theirs.type, "it is the operation asked for");
  const bool may_differ = own.op == OpKind::kAllGather || own.op == OpKind::kAllToAll;
  Require(may_differ || own.shape == theirs.shape, "it has the size asked for");
  if (!planned.first_dims.empty()) {
    Require(planned.first_dims[kRank] == own.shape.front(), "the own rows are those of the tensor");
  }
}

void Check(InputParts parts) {
  const auto part = OwnRequest(parts);
  negotiation::KnownSignatures known;
  const auto plan = negotiation::DecodePlan(parts.Rest(), kRanks, known);
  if (!plan.ok()) return;
  for (const negotiation::Batch& batch : plan->batches) {
    const std::vector<std::optional<OperationTensor>> all(batch.size(), part);
    const absl::Status fits = CheckBatch(batch, all, kRank, kRanks);
    if (!fits.ok()) {
      RequireOneLine(fits);
      continue;
    }
    for (const negotiation::PlannedTensor& planned : batch) {
      for (const auto& rows : planned.first_dims) Require(rows >= 0, "rows are a number");
      for (const auto& rows : planned.received_splits) Require(rows >= 0, "rows are a number");
      if (part.has_value()) CheckPart(planned, *part);
    }
  }
}

}  // namespace
}  // namespace hvd::worker_runtime::engine

// What this rank has asked for, and a plan.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hvd::worker_runtime::engine::Check(hvd::InputParts(data, size));
  return 0;
}
