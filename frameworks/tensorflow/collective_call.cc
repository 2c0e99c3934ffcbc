#include "frameworks/tensorflow/collective_call.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <thread>  // NOLINT: for the id of a thread
#include <utility>

#include "frameworks/runtime_library.h"
#include "frameworks/tensorflow/element_types.h"
#include "frameworks/tensorflow/name_queue.h"

namespace hvd::frameworks::tensorflow {
namespace {

// TensorFlow's status codes are those of absl::StatusCode, and so are the runtime's up to this one.
constexpr int32_t kLastCommonCode = 16;
constexpr int kInvalidArgument = 3;

NameQueue& Queue() {
  // Never destroyed, since kernels may run until the process ends.
  static NameQueue* const queue = new NameQueue;
  return *queue;
}

std::vector<int64_t> DimsOf(const TF_Tensor* tensor) {
  std::vector<int64_t> dims(Tf().NumDims(tensor));
  for (size_t i = 0; i < dims.size(); ++i) dims[i] = Tf().Dim(tensor, static_cast<int>(i));
  return dims;
}

}  // namespace

void CollectiveCall::Start(const Attributes& attributes, TF_OpKernelContext* context,
                           std::function<void()> done) {
  auto* const call = new CollectiveCall(attributes, context, std::move(done));
  // Only the thread that called this may block. If the name is in flight, another thread starts the
  // operation later, between the end of the one before and that one's done(): what waits for that
  // may be what the other ranks need first.
  Queue().Begin(attributes.name, [call, caller = std::this_thread::get_id()] {
    call->Submit(std::this_thread::get_id() == caller);
  });
}

CollectiveCall::CollectiveCall(const Attributes& attributes, TF_OpKernelContext* context,
                               std::function<void()> done)
    : attributes_(attributes), context_(context), done_(std::move(done)) {}

void CollectiveCall::Submit(bool may_block) {
  const bool is_ready = TakeInputs() && MakeOutputs();
  if (!is_ready) return End();
  MakeRequests();
  if (attributes_.waits != 0 && may_block) return SubmitAndWait();
  const int32_t refused =
      Runtime()->submit_then(requests_.data(), static_cast<int32_t>(requests_.size()),
                             attributes_.process_set, &CollectiveCall::OnDone, this);
  // From here on `this` may be gone: the callback may have run already, on its own thread.
  if (refused == HVD_OK) return;
  FailFor(refused);
  End();
}

void CollectiveCall::SubmitAndWait() {
  int64_t handle = 0;
  const int32_t refused =
      Runtime()->submit(requests_.data(), static_cast<int32_t>(requests_.size()),
                        attributes_.process_set, /*waits=*/1, &handle);
  if (refused != HVD_OK) {
    FailFor(refused);
    return End();
  }
  int32_t status = HVD_OK;
  do {
    // The wait also ends for Python's signal handlers, which can't run before TensorFlow returns.
    status = Runtime()->wait(handle, /*seconds=*/1);
  } while (status == HVD_STILL_RUNNING);
  OnDone(this, handle, status);
}

bool CollectiveCall::TakeInputs() {
  const int count = Tf().NumInputs(context_);
  for (int i = 0; i < count; ++i) {
    TF_Tensor* tensor = nullptr;
    const Status status;
    Tf().GetInput(context_, i, &tensor, status.get());
    if (!status.ok()) return Fail(status);
    inputs_.emplace_back(tensor);
    dims_.push_back(DimsOf(tensor));
  }
  return attributes_.op != HVD_ALLTOALL || TakeSplits();
}

// Reads the splits of an all-to-all from the second input. Rows beyond their sum are not sent.
bool CollectiveCall::TakeSplits() {
  const auto* const first = static_cast<const int32_t*>(Tf().TensorData(inputs_[1].get()));
  const int64_t count = dims_[1].empty() ? 0 : dims_[1][0];
  splits_.assign(first, first + count);
  inputs_.pop_back();
  dims_.pop_back();
  if (splits_.empty()) return true;
  const int64_t rows = dims_[0].empty() ? 0 : dims_[0][0];
  const int64_t sent = std::accumulate(splits_.begin(), splits_.end(), int64_t{0});
  if (sent > rows || dims_[0].empty()) {
    const std::string text = "alltoall splits add up to " + std::to_string(sent) +
                             ", but the tensor has " + std::to_string(rows) + " rows";
    return Fail(Status(kInvalidArgument, ErrorText(HVD_INVALID_ARGUMENT, text)));
  }
  dims_[0][0] = sent;
  return true;
}

// Allocates the outputs whose size is known. TensorFlow gives an output its input's memory if
// nothing else uses that: then the operation runs in place.
bool CollectiveCall::MakeOutputs() {
  if (!has_known_outputs()) return true;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const int index = static_cast<int>(i);
    int forwarded = -1;
    const Status status;
    outputs_.emplace_back(Tf().ForwardInputOrAllocateOutput(
        context_, &index, 1, index, dims_[i].data(), static_cast<int>(dims_[i].size()), &forwarded,
        status.get()));
    if (!status.ok()) return Fail(status);
  }
  return true;
}

void CollectiveCall::MakeRequests() {
  const size_t count = std::max<size_t>(inputs_.size(), 1);  // a join has no tensor
  names_.resize(count);
  requests_.resize(count);
  for (size_t i = 0; i < count; ++i) {
    // Derived from the operation's one name, so that the names are the same on all ranks without
    // being sent. The pointers below stay valid: names_ has its final size.
    names_[i] = count == 1
                    ? attributes_.name
                    : attributes_.name + "_" + std::to_string(i + 1) + "of" + std::to_string(count);
    hvd_request& request = requests_[i];
    request = hvd_request{};
    request.name = names_[i].c_str();
    request.op = attributes_.op;
    request.reduction = attributes_.reduction;
    request.prescale = attributes_.prescale;
    request.postscale = attributes_.postscale;
    request.root_rank = attributes_.root_rank;
    request.splits_count = static_cast<int32_t>(splits_.size());
    request.splits = splits_.empty() ? nullptr : splits_.data();
    request.device = HVD_HOST;
    if (inputs_.empty()) continue;
    request.dtype = RuntimeType(Tf().TensorType(inputs_[i].get()));
    request.ndim = static_cast<int32_t>(dims_[i].size());
    request.shape = dims_[i].data();
    request.input = Tf().TensorData(inputs_[i].get());
    if (has_known_outputs()) request.output = Tf().TensorData(outputs_[i].get());
  }
}

void CollectiveCall::OnDone(void* call, int64_t handle, int32_t status) {
  auto* const self = static_cast<CollectiveCall*>(call);
  // An invalid argument that is found only now, after submitting, is a mismatch between ranks.
  if (status != HVD_OK) {
    self->FailFor(status, status == HVD_INVALID_ARGUMENT ? HVD_FAILED_PRECONDITION : status);
  } else {
    self->CopyResults(handle);
  }
  Runtime()->release(handle);
  self->End();
}

bool CollectiveCall::CopyResults(int64_t handle) {
  if (has_known_outputs()) return true;
  for (size_t i = 0; i < requests_.size(); ++i) {
    if (!CopyResult(handle, static_cast<int>(i))) return false;
  }
  return true;
}

bool CollectiveCall::CopyResult(int64_t handle, int index) {
  hvd_tensor result = {};
  // The result is the runtime's memory until release(), so it is copied before.
  if (const int32_t bad = Runtime()->result(handle, index, &result); bad != HVD_OK) {
    return FailFor(bad);
  }
  if (attributes_.op == HVD_JOIN) return WriteNumbers(0, &result.last_joined_rank, {});
  const int type = Tf().TensorType(inputs_[index].get());
  const int64_t elements =
      std::accumulate(result.shape, result.shape + result.ndim, int64_t{1}, std::multiplies<>());
  const Status status;
  const Tensor output(Tf().AllocateOutput(context_, index, type, result.shape, result.ndim,
                                          elements * BytesOf(type), status.get()));
  if (!status.ok()) return Fail(status);
  if (elements > 0) {
    std::memcpy(Tf().TensorData(output.get()), result.data, Tf().TensorByteSize(output.get()));
  }
  if (attributes_.op != HVD_ALLTOALL) return true;
  return WriteNumbers(1, result.received_splits, {result.received_splits_count});
}

bool CollectiveCall::WriteNumbers(int output, const int32_t* numbers,
                                  const std::vector<int64_t>& dims) {
  const int64_t count = std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
  const Status status;
  const Tensor tensor(Tf().AllocateOutput(context_, output, kTfInt32, dims.data(),
                                          static_cast<int>(dims.size()), count * sizeof(int32_t),
                                          status.get()));
  if (!status.ok()) return Fail(status);
  if (count > 0) std::memcpy(Tf().TensorData(tensor.get()), numbers, count * sizeof(int32_t));
  return true;
}

bool CollectiveCall::Fail(const Status& status) {
  Tf().OpKernelContext_Failure(context_, status.get());
  return false;
}

bool CollectiveCall::FailFor(int32_t hvd_status) { return FailFor(hvd_status, hvd_status); }

bool CollectiveCall::FailFor(int32_t hvd_status, int32_t shown_as) {
  // TensorFlow would make an unknown code an exception of no known class.
  const int32_t code = shown_as <= kLastCommonCode ? shown_as : int32_t{HVD_ABORTED};
  return Fail(Status(code, ErrorText(hvd_status)));
}

// The order matters. done() may destroy the kernel (and so attributes_), the context and the
// tensors, so all references to them are dropped before it. The next operation of the same name is
// started before done(), on this thread.
void CollectiveCall::End() {
  inputs_.clear();
  outputs_.clear();
  const std::string name = attributes_.name;
  const std::function<void()> done = std::move(done_);
  delete this;
  Queue().End(name);
  done();
}

}  // namespace hvd::frameworks::tensorflow
