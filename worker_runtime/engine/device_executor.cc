#include "worker_runtime/engine/device_executor.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "worker_runtime/engine/reduction_math.h"

namespace hvd {
namespace {

using Parts = absl::Span<const std::optional<OperationTensor>>;

size_t Count(const TensorSignature& signature) {
  return static_cast<size_t>(ElementCount(signature.shape));
}

// What all elements are multiplied by: an average is a scaled sum.
double FactorOf(const TensorSignature& signature, int ranks) {
  const double scale = signature.prescale * signature.postscale;
  return signature.reduction == Reduction::kAverage ? scale / ranks : scale;
}

}  // namespace

bool IsForDevices(const TensorSignature& signature) {
  if (signature.op == OpKind::kBroadcast) return true;
  if (signature.op != OpKind::kAllReduce || signature.reduction == Reduction::kAdasum) return false;
  const bool is_sum = signature.reduction == Reduction::kSum;
  const bool is_average = signature.reduction == Reduction::kAverage;
  const bool is_scaled = is_average || signature.prescale != 1.0 || signature.postscale != 1.0;
  return !is_scaled || ((is_sum || is_average) && IsFloating(signature.type));
}

DeviceExecutor::DeviceExecutor(DeviceConnector connect, int usual_device, absl::Duration timeout,
                               Recorder& recorder, int process_set)
    : connect_(std::move(connect)),
      options_{timeout},
      recorder_(recorder),
      process_set_(process_set),
      device_(usual_device) {}

absl::Status DeviceExecutor::Run(const Batch& batch, Parts parts) {
  const TensorSignature& first = *batch.front().signature;
  if (!IsForDevices(first)) {
    return absl::UnimplementedError(
        absl::StrCat("no device can do this ", NameOf(first.op), " of '", first.name, "'"));
  }
  for (const auto& part : parts) {
    if (part.has_value()) device_ = part->request().device;
  }
  RETURN_IF_ERROR(Connect(device_));
  for (const auto& part : parts) {
    if (!part.has_value() || part->request().ready_event == nullptr) continue;
    RETURN_IF_ERROR(communicator_->WaitFor(part->request().ready_event));
  }
  if (first.op == OpKind::kAllReduce) return AllReduce(batch, parts);
  if (batch.size() > 1 || !parts[0].has_value()) {
    return absl::InternalError(absl::StrCat("an impossible plan for '", first.name, "'"));
  }
  return Broadcast(batch.front(), *parts[0]);
}

absl::Status DeviceExecutor::Connect(int device) {
  RETURN_IF_ERROR(refusal_);
  if (communicator_ != nullptr) {
    if (communicator_->device() == device) return absl::OkStatus();
    // The others know nothing of it, and wait for this rank.
    return absl::InternalError(absl::StrCat("a tensor on CUDA device ", device, " after one on ",
                                            communicator_->device(),
                                            ": a process uses one device"));
  }
  if (connect_ == nullptr) {
    return refusal_ = absl::UnimplementedError("tensors on devices are not for this process");
  }
  const ActivityScope activity(recorder_, process_set_, "", "INIT_NCCL");
  auto connected = connect_(device, WaitBounds(options_.timeout, &cancellation_));
  if (absl::IsUnimplemented(connected.status())) refusal_ = connected.status();
  RETURN_IF_ERROR(cancellation_.status());
  RETURN_IF_ERROR(connected.status());
  absl::MutexLock lock(&mutex_);
  communicator_ = *std::move(connected);
  // It may have come meanwhile.
  const absl::Status aborted = cancellation_.status();
  if (!aborted.ok()) communicator_->Abort(aborted.message());
  return aborted;
}

void DeviceExecutor::Abort(absl::string_view reason) {
  cancellation_.Cancel(absl::AbortedError(reason));
  absl::MutexLock lock(&mutex_);
  if (communicator_ != nullptr) communicator_->Abort(reason);
}

absl::Status DeviceExecutor::AllReduce(const Batch& batch, Parts parts) {
  const TensorSignature& first = *batch.front().signature;
  ASSIGN_OR_RETURN(char* neutral, Neutral(batch, parts));
  std::vector<Piece> pieces;
  for (size_t i = 0; i < batch.size(); ++i) {
    const TensorSignature& signature = *batch[i].signature;
    const size_t count = Count(signature);
    if (parts[i].has_value()) {
      void* const out = parts[i]->PrepareOutput(ByteCount(signature));
      parts[i]->result().shape = signature.shape;
      pieces.push_back(Piece{parts[i]->request().input, out, count});
    } else {
      pieces.push_back(Piece{neutral, neutral, count});
      neutral += ByteCount(signature);
    }
  }
  const ActivityScope activity(recorder_, process_set_, "NCCL_", "ALLREDUCE");
  return communicator_->AllReduceScaled(pieces, first.type, ToReduceOp(first.reduction),
                                        FactorOf(first, communicator_->size()), options_);
}

absl::StatusOr<char*> DeviceExecutor::Neutral(const Batch& batch, Parts parts) {
  size_t count = 0;
  for (size_t i = 0; i < batch.size(); ++i) {
    if (!parts[i].has_value()) count += Count(*batch[i].signature);
  }
  if (count == 0) return nullptr;
  const TensorSignature& first = *batch.front().signature;
  std::vector<char> on_host(count * SizeOf(first.type));
  FillNeutral(on_host.data(), count, first.type, first.reduction);
  ASSIGN_OR_RETURN(void* const memory, communicator_->Reserve(on_host.size()));
  RETURN_IF_ERROR(communicator_->CopyFromHost(memory, on_host.data(), on_host.size(), options_));
  return static_cast<char*>(memory);
}

absl::Status DeviceExecutor::Broadcast(const PlannedTensor& planned, const OperationTensor& part) {
  const TensorSignature& signature = *planned.signature;
  const size_t bytes = ByteCount(signature);
  void* const out = part.PrepareOutput(bytes);
  part.result().shape = signature.shape;
  const ActivityScope activity(recorder_, process_set_, "NCCL_", "BROADCAST");
  const void* const in = part.request().input;
  if (communicator_->rank() == signature.root_rank && in != nullptr) {
    RETURN_IF_ERROR(communicator_->CopyOnDevice(out, in, bytes, options_));
  }
  return communicator_->Broadcast(out, bytes, signature.root_rank, options_);
}

}  // namespace hvd
