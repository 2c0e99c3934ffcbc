#include "worker_runtime/engine/device_executor.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "worker_runtime/engine/reduction_math.h"
#include "worker_runtime/engine/result_layout.h"

namespace hvd::worker_runtime::engine {
namespace {

using negotiation::OpTrait;

using Parts = absl::Span<const std::optional<OperationTensor>>;

size_t Count(const negotiation::TensorSignature& signature) {
  return static_cast<size_t>(negotiation::ElementCount(signature.shape));
}

// The one factor that a device applies to a sum: both scales, and the division of an average.
double FactorOf(const negotiation::TensorSignature& signature, int ranks) {
  return FactorOfSum(signature.reduction, signature.prescale * signature.postscale, ranks);
}

bool CanReduce(const negotiation::TensorSignature& signature) {
  if (signature.reduction == negotiation::Reduction::kAdasum) return false;
  const bool is_sum = signature.reduction == negotiation::Reduction::kSum;
  const bool is_average = signature.reduction == negotiation::Reduction::kAverage;
  const bool is_scaled = is_average || signature.prescale != 1.0 || signature.postscale != 1.0;
  return !is_scaled || ((is_sum || is_average) && collectives::IsFloating(signature.type));
}

}  // namespace

bool IsForDevices(const negotiation::TensorSignature& signature) {
  if (!Has(signature.op, OpTrait::kCarriesData)) return false;
  return !Has(signature.op, OpTrait::kReduces) || CanReduce(signature);
}

DeviceExecutor::DeviceExecutor(DeviceConnector connect, int usual_device, absl::Duration timeout,
                               timeline::Recorder& recorder, int process_set)
    : connect_(std::move(connect)),
      options_{timeout},
      recorder_(recorder),
      process_set_(process_set),
      device_(usual_device) {}

absl::Status DeviceExecutor::Run(const negotiation::Batch& batch, Parts parts) {
  const negotiation::TensorSignature& first = *batch.front().signature;
  if (!IsForDevices(first)) {
    // Decided from the plan alone, so it fails on all ranks, none of which has begun a collective.
    return absl::UnimplementedError(absl::StrCat(
        "no device can do this ", negotiation::NameOf(first.op), " of '", first.name, "'"));
  }
  // Kept for later batches in which this rank, having joined, has no tensor.
  for (const auto& part : parts) {
    if (part.has_value()) device_ = part->request().device;
  }
  RETURN_IF_ERROR(Connect(device_));
  // The communicator's stream waits for the tensors' events; this thread does not.
  for (const auto& part : parts) {
    if (!part.has_value() || part->request().ready_event == nullptr) continue;
    RETURN_IF_ERROR(communicator_->WaitFor(part->request().ready_event));
  }
  if (first.op == negotiation::OpKind::kAllReduce) return AllReduce(batch, parts);
  if (batch.size() > 1 || !parts[0].has_value()) {
    return absl::InternalError(absl::StrCat("an impossible plan for '", first.name, "'"));
  }
  switch (first.op) {
    case negotiation::OpKind::kAllGather:
      return AllGather(batch.front(), *parts[0]);
    case negotiation::OpKind::kAllToAll:
      return AllToAll(batch.front(), *parts[0]);
    case negotiation::OpKind::kReduceScatter:
      return ReduceScatter(batch.front(), *parts[0]);
    case negotiation::OpKind::kBroadcast:
      return Broadcast(batch.front(), *parts[0]);
    case negotiation::OpKind::kAllReduce:  // above
    case negotiation::OpKind::kBarrier:    // IsForDevices refuses what carries no data
    case negotiation::OpKind::kJoin:
    case negotiation::OpKind::kCommit:
      break;
  }
  return absl::InternalError(absl::StrCat("not an operation for devices: ", NameOf(first.op)));
}

absl::Status DeviceExecutor::Connect(int device) {
  RETURN_IF_ERROR(refusal_);
  if (communicator_ != nullptr) {
    if (communicator_->device() == device) return absl::OkStatus();
    // An error that ends the epoch: only this rank knows, and the others wait for it in the
    // collective.
    return absl::InternalError(absl::StrCat("a tensor on CUDA device ", device, " after one on ",
                                            communicator_->device(),
                                            ": a process uses one device"));
  }
  if (connect_ == nullptr) {
    return refusal_ = absl::UnimplementedError("this process can't use tensors on devices");
  }
  const timeline::ActivityScope activity(recorder_, process_set_, "", "INIT_NCCL");
  auto connected = connect_(device, WaitBounds(options_.timeout, &cancellation_));
  // That a group has no devices is known to all its ranks, so later batches fail on all of them
  // without another attempt, which would be a collective.
  if (absl::IsUnimplemented(connected.status())) refusal_ = connected.status();
  // The reason of an abort is more useful than the error of the connection that it has ended.
  RETURN_IF_ERROR(cancellation_.status());
  RETURN_IF_ERROR(connected.status());
  absl::MutexLock lock(&mutex_);
  communicator_ = *std::move(connected);
  // Abort may have come before communicator_ was set, and so have missed it.
  const absl::Status aborted = cancellation_.status();
  if (!aborted.ok()) communicator_->Abort(aborted.message());
  return aborted;
}

void DeviceExecutor::Abort(absl::string_view reason) {
  cancellation_.Cancel(absl::AbortedError(reason));
  absl::MutexLock lock(&mutex_);
  if (communicator_ != nullptr) communicator_->Abort(reason);
}

absl::Status DeviceExecutor::AllReduce(const negotiation::Batch& batch, Parts parts) {
  const negotiation::TensorSignature& first = *batch.front().signature;
  ASSIGN_OR_RETURN(char* neutral, Neutral(batch, parts));
  std::vector<collectives::Piece> pieces;
  for (size_t i = 0; i < batch.size(); ++i) {
    const negotiation::TensorSignature& signature = *batch[i].signature;
    const size_t count = Count(signature);
    if (parts[i].has_value()) {
      ASSIGN_OR_RETURN(void* const out, parts[i]->PrepareOutput(negotiation::ByteCount(signature)));
      parts[i]->result().shape = signature.shape;
      pieces.push_back(collectives::Piece{parts[i]->request().input, out, count});
    } else {
      pieces.push_back(collectives::Piece{neutral, neutral, count});
      neutral += negotiation::ByteCount(signature);
    }
  }
  const timeline::ActivityScope activity = Calling("ALLREDUCE");
  return communicator_->AllReduceScaled(pieces, first.type, ToReduceOp(first.reduction),
                                        FactorOf(first, communicator_->size()), options_);
}

absl::StatusOr<char*> DeviceExecutor::Neutral(const negotiation::Batch& batch, Parts parts) {
  size_t count = 0;
  for (size_t i = 0; i < batch.size(); ++i) {
    if (!parts[i].has_value()) count += Count(*batch[i].signature);
  }
  if (count == 0) return nullptr;
  const negotiation::TensorSignature& first = *batch.front().signature;
  std::vector<char> on_host(count * collectives::SizeOf(first.type));
  FillNeutral(on_host.data(), count, first.type, first.reduction);
  // Filled on the host and copied: joins are rare, and this needs no kernel.
  ASSIGN_OR_RETURN(void* const memory, communicator_->Reserve(on_host.size()));
  RETURN_IF_ERROR(communicator_->CopyFromHost(memory, on_host.data(), on_host.size(), options_));
  return static_cast<char*>(memory);
}

absl::Status DeviceExecutor::Broadcast(const negotiation::PlannedTensor& planned,
                                       const OperationTensor& part) {
  const negotiation::TensorSignature& signature = *planned.signature;
  const size_t bytes = negotiation::ByteCount(signature);
  ASSIGN_OR_RETURN(void* const out, part.PrepareOutput(bytes));
  part.result().shape = signature.shape;
  const timeline::ActivityScope activity = Calling("BROADCAST");
  const void* const in = part.request().input;
  if (communicator_->rank() == signature.root_rank && in != nullptr) {
    // The broadcast works in place, and the input must not change.
    RETURN_IF_ERROR(communicator_->CopyOnDevice(out, in, bytes, options_));
  }
  return communicator_->Broadcast(out, bytes, signature.root_rank, options_);
}

absl::StatusOr<void*> DeviceExecutor::PrepareOutput(const OperationTensor& part, size_t bytes,
                                                    size_t expected) {
  TensorResult& result = part.result();
  result.data = part.request().output;
  const size_t offered = part.request().output_bytes;
  // The framework has offered memory for the likely size. If that is wrong, the engine allocates:
  // asking Python now would make the engine wait for Python's lock, and ranks for each other.
  if (result.data == nullptr || bytes != (offered > 0 ? offered : expected)) {
    ASSIGN_OR_RETURN(std::shared_ptr<void> memory, communicator_->Allocate(bytes));
    result.data = memory.get();
    part.operation->memory.push_back(std::move(memory));
  }
  return result.data;
}

absl::Status DeviceExecutor::AllGather(const negotiation::PlannedTensor& planned,
                                       const OperationTensor& part) {
  const std::vector<size_t> bytes = GatherLayout(planned, part.result());
  const size_t total = SumOf(bytes);
  const size_t expected = bytes[communicator_->rank()] * bytes.size();
  ASSIGN_OR_RETURN(void* const out, PrepareOutput(part, total, expected));
  // All ranks know all sizes, so all leave the call out.
  if (total == 0) return absl::OkStatus();
  const timeline::ActivityScope activity = Calling("ALLGATHER");
  return communicator_->AllGather(part.request().input, out, bytes, options_);
}

absl::Status DeviceExecutor::AllToAll(const negotiation::PlannedTensor& planned,
                                      const OperationTensor& part) {
  const ExchangeLayout layout = MakeExchangeLayout(planned, part.signature(), part.result());
  const size_t total = SumOf(layout.receive);
  ASSIGN_OR_RETURN(void* const out, PrepareOutput(part, total, SumOf(layout.send)));
  if (layout.is_empty) return absl::OkStatus();
  const timeline::ActivityScope activity = Calling("ALLTOALL");
  return communicator_->AllToAll(part.request().input, layout.send, out, layout.receive, options_);
}

absl::Status DeviceExecutor::ReduceScatter(const negotiation::PlannedTensor& planned,
                                           const OperationTensor& part) {
  const negotiation::TensorSignature& signature = *planned.signature;
  const int size = communicator_->size(), rank = communicator_->rank();
  const std::vector<size_t> counts = ScatterLayout(signature, rank, size, part.result());
  const size_t bytes = counts[rank] * collectives::SizeOf(signature.type);
  ASSIGN_OR_RETURN(void* const out, PrepareOutput(part, bytes, bytes));
  if (Count(signature) == 0) return absl::OkStatus();
  const timeline::ActivityScope activity = Calling("REDUCESCATTER");
  return communicator_->ReduceScatterScaled(part.request().input, out, counts, signature.type,
                                            ToReduceOp(signature.reduction),
                                            FactorOf(signature, size), options_);
}

}  // namespace hvd::worker_runtime::engine
