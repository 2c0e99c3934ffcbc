#include "collectives/nccl/foreign_stream.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "collectives/nccl/convert.h"

namespace hvd::collectives::nccl {
namespace {

CudaAddress Address(const void* pointer) { return reinterpret_cast<CudaAddress>(pointer); }

}  // namespace

// Makes the stream's context current on this thread.
class ForeignStream::Scope {
 public:
  explicit Scope(const ForeignStream& stream) : cuda_(*stream.cuda_) {
    cuda_.context_push(stream.context_);
  }
  ~Scope() {
    CudaContext* popped = nullptr;
    cuda_.context_pop(&popped);
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  const CudaFunctions& cuda_;
};

absl::StatusOr<ForeignStream> ForeignStream::Find(const CudaFunctions& cuda, CudaStream* stream) {
  CudaContext* context = nullptr;
  RETURN_IF_ERROR(FromCuda(cuda, cuda.stream_get_context(stream, &context),
                           "asking for the context of the framework's stream"));
  ForeignStream found(cuda, stream, context);
  const Scope scope(found);
  RETURN_IF_ERROR(
      FromCuda(cuda, cuda.context_get_device(&found.device_), "asking for a context's device"));
  return found;
}

absl::Status ForeignStream::Check(CudaResult result, absl::string_view what) const {
  return FromCuda(*cuda_, result, absl::StrCat(what, " of the framework on CUDA device ", device_));
}

absl::StatusOr<CudaEvent*> ForeignStream::Mark() {
  const Scope scope(*this);
  CudaEvent* event = nullptr;
  // Without timing, an event is cheaper to record and to query.
  RETURN_IF_ERROR(
      Check(cuda_->event_create(&event, kCudaEventDisableTiming), "making an event for a stream"));
  const absl::Status recorded =
      Check(cuda_->event_record(event, stream_), "recording an event on a stream");
  if (recorded.ok()) return event;
  cuda_->event_destroy(event);
  return recorded;
}

void ForeignStream::Forget(CudaEvent* event) {
  const Scope scope(*this);
  cuda_->event_destroy(event);
}

absl::Status ForeignStream::Finish(const absl::Status& started) {
  const absl::Status done = Check(cuda_->stream_synchronize(stream_), "waiting for a stream");
  return started.ok() ? done : started;
}

absl::Status ForeignStream::CopyToHost(absl::Span<const BusCopy> copies) {
  const Scope scope(*this);
  absl::Status status;
  for (const BusCopy& copy : copies) {
    if (copy.bytes == 0 || !status.ok()) continue;
    status = Check(cuda_->copy_to_host(copy.to, Address(copy.from), copy.bytes, stream_),
                   "copying to the host on a stream");
  }
  return Finish(status);
}

absl::Status ForeignStream::CopyToDevice(absl::Span<const BusCopy> copies) {
  const Scope scope(*this);
  absl::Status status;
  for (const BusCopy& copy : copies) {
    if (copy.bytes == 0 || !status.ok()) continue;
    status = Check(cuda_->copy_from_host(Address(copy.to), copy.from, copy.bytes, stream_),
                   "copying from the host on a stream");
  }
  return Finish(status);
}

}  // namespace hvd::collectives::nccl
