#include "worker_runtime/engine/executor.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "collectives/adasum/adasum.h"
#include "collectives/scale.h"
#include "worker_runtime/engine/reduction_math.h"
#include "worker_runtime/engine/result_layout.h"

namespace hvd::worker_runtime::engine {
namespace {

// Copies. The pointers may be equal, and may be null if `bytes` is 0.
void Copy(void* to, const void* from, size_t bytes) {
  if (bytes > 0 && to != from) std::memmove(to, from, bytes);
}

size_t Count(const negotiation::TensorSignature& signature) {
  return static_cast<size_t>(negotiation::ElementCount(signature.shape));
}

// Writes this rank's contribution to `to`: its tensor times the prescale factor, or, if it has
// joined, the neutral element of the reduction.
void Contribute(const negotiation::TensorSignature& signature, const OperationTensor* part,
                void* to) {
  const size_t count = Count(signature);
  if (part == nullptr) {
    FillNeutral(to, count, signature.type, signature.reduction);
    return;
  }
  Copy(to, part->request().input, negotiation::ByteCount(signature));
  if (signature.prescale != 1.0) collectives::Scale(to, count, signature.type, signature.prescale);
}

void ContributeWide(const negotiation::TensorSignature& signature, const OperationTensor& part,
                    int64_t* to) {
  const size_t count = Count(signature);
  Widen(part.request().input, count, signature.type, to);
  if (signature.prescale != 1.0)
    collectives::Scale(to, count, collectives::DataType::kInt64, signature.prescale);
}

// Makes the average of a wide sum.
void FinishWide(const negotiation::TensorSignature& signature, int64_t* sum, size_t count,
                int ranks, void* out) {
  FinishReduction(sum, count, collectives::DataType::kInt64, signature.reduction,
                  signature.postscale, ranks);
  Narrow(sum, count, signature.type, out);
}

const OperationTensor* Get(const std::optional<OperationTensor>& part) {
  return part.has_value() ? &*part : nullptr;
}

// "TCP_", from a description such as "tcp, rank 0 of 2, ...".
std::string PrefixOf(const collectives::Communicator& communicator) {
  const std::string text = communicator.ToString();
  return absl::StrCat(absl::AsciiStrToUpper(text.substr(0, text.find(','))), "_");
}

}  // namespace

Executor::Executor(collectives::Communicator& communicator, absl::Duration timeout,
                   timeline::Recorder& recorder, int process_set)
    : communicator_(communicator),
      options_{timeout},
      recorder_(recorder),
      process_set_(process_set),
      backend_(PrefixOf(communicator)) {}

absl::Status Executor::Run(const negotiation::Batch& batch, const Parts& parts) {
  const negotiation::PlannedTensor& first = batch.front();
  const negotiation::OpKind op = first.signature->op;
  // The choices below depend only on the plan and on the kind of communicator, so all ranks make
  // the same calls, also a rank that has joined and has no tensors.
  if (op == negotiation::OpKind::kAllReduce) {
    if (NeedsWideSum(first.signature->reduction, first.signature->type))
      return AllReduceWide(batch, parts);
    if (CanReducePieces(batch)) return AllReducePieces(batch, parts);
    return batch.size() > 1 ? AllReduceFused(batch, parts) : AllReduceOne(first, Get(parts[0]));
  }
  if (batch.size() > 1 || !parts[0].has_value()) {
    return absl::InternalError(
        absl::StrCat("an impossible plan for '", first.signature->name, "'"));
  }
  const OperationTensor& part = *parts[0];
  switch (op) {
    case negotiation::OpKind::kAllGather:
      return AllGather(first, part);
    case negotiation::OpKind::kBroadcast:
      return Broadcast(first, part);
    case negotiation::OpKind::kAllToAll:
      return AllToAll(first, part);
    case negotiation::OpKind::kReduceScatter:
      return ReduceScatter(first, part);
    case negotiation::OpKind::kJoin:
      part.result().last_joined_rank = first.last_joined_rank;
      return absl::OkStatus();
    case negotiation::OpKind::kCommit:
      part.result().world_is_changing = first.world_is_changing;
      return absl::OkStatus();
    case negotiation::OpKind::kBarrier:  // the plan itself shows that all ranks have arrived
    case negotiation::OpKind::kAllReduce:
      break;
  }
  return absl::OkStatus();
}

bool Executor::CanReducePieces(const negotiation::Batch& batch) const {
  const negotiation::TensorSignature& first = *batch.front().signature;
  return communicator_.TakesPieces() && first.reduction != negotiation::Reduction::kAdasum;
}

absl::Status Executor::AllReducePieces(const negotiation::Batch& batch, const Parts& parts) {
  std::vector<collectives::Piece> pieces;
  pieces.reserve(batch.size());
  // Scratch memory holds the neutral contributions of a rank that has joined. Tensors with a
  // prescale factor are scaled into their outputs and reduced there.
  size_t scratch_bytes = 0;
  for (size_t i = 0; i < batch.size(); ++i) {
    const negotiation::TensorSignature& signature = *batch[i].signature;
    if (!parts[i].has_value()) scratch_bytes += negotiation::ByteCount(signature);
  }
  ASSIGN_OR_RETURN(char* scratch, buffer_.Reserve(scratch_bytes));
  for (size_t i = 0; i < batch.size(); ++i) {
    const negotiation::TensorSignature& signature = *batch[i].signature;
    const size_t bytes = negotiation::ByteCount(signature);
    const OperationTensor* const part = Get(parts[i]);
    void* out = scratch;
    if (part != nullptr) {
      ASSIGN_OR_RETURN(out, part->PrepareOutput(bytes));
    } else {
      scratch += bytes;
    }
    const void* in = out;
    if (part != nullptr && signature.prescale == 1.0) {
      in = part->request().input;  // no copy
    } else {
      Contribute(signature, part, out);
    }
    if (part != nullptr) part->result().shape = signature.shape;
    pieces.push_back(collectives::Piece{in, out, Count(signature)});
  }
  const negotiation::TensorSignature& first = *batch.front().signature;
  const timeline::ActivityScope activity = Calling("ALLREDUCE");
  return communicator_.AllReducePieces(
      pieces, first.type, ToReduceOp(first.reduction),
      // Called for each block as soon as it is reduced, while it is still in the cache.
      [&](void* data, size_t count) {
        FinishReduction(data, count, first.type, first.reduction, first.postscale,
                        communicator_.size());
      },
      options_);
}

absl::Status Executor::AllReduceOne(const negotiation::PlannedTensor& planned,
                                    const OperationTensor* part) {
  const negotiation::TensorSignature& signature = *planned.signature;
  const size_t bytes = negotiation::ByteCount(signature);
  // A single tensor is reduced in its output. A rank that has joined reduces in scratch memory,
  // whose result nobody reads.
  void* out = nullptr;
  if (part != nullptr) {
    ASSIGN_OR_RETURN(out, part->PrepareOutput(bytes));
  } else {
    ASSIGN_OR_RETURN(out, buffer_.Reserve(bytes));
  }
  const void* in = out;
  if (part != nullptr && signature.prescale == 1.0) {
    in = part->request().input;  // no copy
  } else {
    Contribute(signature, part, out);
  }
  if (part != nullptr) part->result().shape = signature.shape;
  return Reduce(signature, in, out, Count(signature));
}

absl::Status Executor::AllReduceFused(const negotiation::Batch& batch, const Parts& parts) {
  size_t bytes = 0;
  for (const negotiation::PlannedTensor& planned : batch)
    bytes += negotiation::ByteCount(*planned.signature);
  ASSIGN_OR_RETURN(char* const begin, buffer_.Reserve(bytes));
  char* next = begin;
  std::vector<collectives::Stretch> pieces;
  {
    const timeline::ActivityScope activity = Copying("MEMCPY_IN_FUSION_BUFFER");
    for (size_t i = 0; i < batch.size(); ++i) {
      const negotiation::TensorSignature& signature = *batch[i].signature;
      const OperationTensor* part = Get(parts[i]);
      const size_t size = negotiation::ByteCount(signature);
      Contribute(signature, part, next);
      // Outputs are allocated before the reduction, so that a lack of memory is an error of this
      // rank and not found out after the collective. Absent tensors have no address: Unpack skips
      // them.
      pieces.push_back(collectives::Stretch{nullptr, size});
      if (part != nullptr) {
        ASSIGN_OR_RETURN(pieces.back().data, part->PrepareOutput(size));
      }
      if (part != nullptr) part->result().shape = signature.shape;
      next += size;
    }
  }
  const negotiation::TensorSignature& first = *batch.front().signature;
  RETURN_IF_ERROR(Reduce(first, begin, begin, bytes / collectives::SizeOf(first.type)));
  const timeline::ActivityScope activity = Copying("MEMCPY_OUT_FUSION_BUFFER");
  buffer_.Unpack(pieces);
  return absl::OkStatus();
}

absl::Status Executor::Reduce(const negotiation::TensorSignature& signature, const void* in,
                              void* out, size_t count) {
  // The same on all ranks: they agree on the shape.
  if (count == 0) return absl::OkStatus();
  if (signature.reduction == negotiation::Reduction::kAdasum) {
    Copy(out, in, negotiation::ByteCount(signature));  // Adasum works in place
    const timeline::ActivityScope activity = Calling("ADASUM");
    RETURN_IF_ERROR(
        collectives::adasum::AdasumAllReduce(communicator_, out, count, signature.type, options_));
  } else {
    const timeline::ActivityScope activity = Calling("ALLREDUCE");
    RETURN_IF_ERROR(communicator_.AllReduce(in, out, count, signature.type,
                                            ToReduceOp(signature.reduction), options_));
  }
  FinishReduction(out, count, signature.type, signature.reduction, signature.postscale,
                  communicator_.size());
  return absl::OkStatus();
}

absl::Status Executor::AllReduceWide(const negotiation::Batch& batch, const Parts& parts) {
  size_t largest = 0;
  std::vector<void*> outs(batch.size());
  for (size_t i = 0; i < batch.size(); ++i) {
    const negotiation::TensorSignature& signature = *batch[i].signature;
    largest = std::max(largest, Count(signature));
    if (!parts[i].has_value()) continue;
    ASSIGN_OR_RETURN(outs[i], parts[i]->PrepareOutput(negotiation::ByteCount(signature)));
    parts[i]->result().shape = signature.shape;
  }
  ASSIGN_OR_RETURN(char* const scratch, buffer_.Reserve(largest * sizeof(int64_t)));
  int64_t* const wide = reinterpret_cast<int64_t*>(scratch);
  for (size_t i = 0; i < batch.size(); ++i) {
    const negotiation::TensorSignature& signature = *batch[i].signature;
    const size_t count = Count(signature);
    if (count == 0) continue;
    const OperationTensor* const part = Get(parts[i]);
    if (part != nullptr) {
      ContributeWide(signature, *part, wide);
    } else {
      std::fill_n(wide, count, 0);
    }
    {
      const timeline::ActivityScope activity = Calling("ALLREDUCE");
      RETURN_IF_ERROR(communicator_.AllReduce(wide, wide, count, collectives::DataType::kInt64,
                                              collectives::ReduceOp::kSum, options_));
    }
    if (part != nullptr) FinishWide(signature, wide, count, communicator_.size(), outs[i]);
  }
  return absl::OkStatus();
}

absl::Status Executor::ReduceScatterWide(const negotiation::TensorSignature& signature,
                                         const OperationTensor& part,
                                         const std::vector<size_t>& counts, void* out) {
  const size_t all = Count(signature), own = counts[communicator_.rank()];
  ASSIGN_OR_RETURN(char* const scratch, buffer_.Reserve((all + own) * sizeof(int64_t)));
  int64_t* const wide = reinterpret_cast<int64_t*>(scratch);
  ContributeWide(signature, part, wide);
  {
    const timeline::ActivityScope activity = Calling("REDUCESCATTER");
    RETURN_IF_ERROR(communicator_.ReduceScatter(wide, wide + all, counts,
                                                collectives::DataType::kInt64,
                                                collectives::ReduceOp::kSum, options_));
  }
  FinishWide(signature, wide + all, own, communicator_.size(), out);
  return absl::OkStatus();
}

absl::Status Executor::AllGather(const negotiation::PlannedTensor& planned,
                                 const OperationTensor& part) {
  const std::vector<size_t> bytes = GatherLayout(planned, part.result());
  const size_t total = SumOf(bytes);
  // The request's output has room for as many rows from every rank as from this one.
  ASSIGN_OR_RETURN(void* out,
                   part.PrepareOutput(total, bytes[communicator_.rank()] * bytes.size()));
  if (total == 0) return absl::OkStatus();
  const timeline::ActivityScope activity = Calling("ALLGATHER");
  return communicator_.AllGather(part.request().input, out, bytes, options_);
}

absl::Status Executor::Broadcast(const negotiation::PlannedTensor& planned,
                                 const OperationTensor& part) {
  const negotiation::TensorSignature& signature = *planned.signature;
  const size_t bytes = negotiation::ByteCount(signature);
  part.result().shape = signature.shape;
  if (const ScatteredTensor* const scattered = part.request().scattered.get()) {
    const timeline::ActivityScope activity = Calling("BCAST");
    return communicator_.BroadcastStretches(scattered->stretches, signature.root_rank,
                                            scattered->observe, options_);
  }
  ASSIGN_OR_RETURN(void* out, part.PrepareOutput(bytes));
  const void* in = part.request().input;
  if (communicator_.rank() == signature.root_rank && in != nullptr) Copy(out, in, bytes);
  if (bytes == 0) return absl::OkStatus();
  const timeline::ActivityScope activity = Calling("BCAST");
  return communicator_.Broadcast(out, bytes, signature.root_rank, options_);
}

absl::Status Executor::AllToAll(const negotiation::PlannedTensor& planned,
                                const OperationTensor& part) {
  const ExchangeLayout layout = MakeExchangeLayout(planned, part.signature(), part.result());
  ASSIGN_OR_RETURN(void* out, part.PrepareOutput(SumOf(layout.receive), SumOf(layout.send)));
  // Skipped only if no rank sends anything, since all ranks must make the same calls.
  if (layout.is_empty) return absl::OkStatus();
  const timeline::ActivityScope activity = Calling("ALLTOALL");
  return communicator_.AllToAll(part.request().input, layout.send, out, layout.receive, options_);
}

absl::Status Executor::ReduceScatter(const negotiation::PlannedTensor& planned,
                                     const OperationTensor& part) {
  const negotiation::TensorSignature& signature = *planned.signature;
  const std::vector<size_t> counts =
      ScatterLayout(signature, communicator_.rank(), communicator_.size(), part.result());
  const size_t count = counts[communicator_.rank()];
  ASSIGN_OR_RETURN(void* out, part.PrepareOutput(count * collectives::SizeOf(signature.type)));
  if (Count(signature) == 0) return absl::OkStatus();
  if (NeedsWideSum(signature.reduction, signature.type))
    return ReduceScatterWide(signature, part, counts, out);
  const void* in = part.request().input;
  // The user's input must not change, so it is scaled in scratch memory.
  if (signature.prescale != 1.0) {
    ASSIGN_OR_RETURN(void* scaled, buffer_.Reserve(negotiation::ByteCount(signature)));
    Contribute(signature, &part, scaled);
    in = scaled;
  }
  {
    const timeline::ActivityScope activity = Calling("REDUCESCATTER");
    RETURN_IF_ERROR(communicator_.ReduceScatter(in, out, counts, signature.type,
                                                ToReduceOp(signature.reduction), options_));
  }
  FinishReduction(out, count, signature.type, signature.reduction, signature.postscale,
                  communicator_.size());
  return absl::OkStatus();
}

}  // namespace hvd::worker_runtime::engine
