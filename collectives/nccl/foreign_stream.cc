#include "collectives/nccl/foreign_stream.h"

#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/status_macros.h"
#include "collectives/nccl/convert.h"
#include "collectives/nccl/library.h"

namespace hvd::collectives::nccl {
namespace {

CudaAddress Address(const void* pointer) { return reinterpret_cast<CudaAddress>(pointer); }

// The primary contexts that callers use. One that nobody holds is destroyed with all its memory.
class PrimaryContexts {
 public:
  static PrimaryContexts& All() {
    static auto* const all = new PrimaryContexts;  // never destroyed: used to the end
    return *all;
  }

  absl::StatusOr<CudaContext*> Of(const CudaFunctions& cuda, int device) {
    absl::MutexLock lock(&mutex_);
    const auto found = of_devices_.find(device);
    if (found != of_devices_.end()) return found->second;
    RETURN_IF_ERROR(FromCuda(cuda, cuda.init(0), "starting CUDA"));
    int count = 0;
    RETURN_IF_ERROR(FromCuda(cuda, cuda.device_get_count(&count), "counting devices"));
    if (device < 0 || device >= count) {
      return absl::InvalidArgumentError(
          absl::StrCat("there is no CUDA device ", device, " among ", count));
    }
    CudaContext* context = nullptr;
    RETURN_IF_ERROR(FromCuda(cuda, cuda.primary_context_retain(&context, device),
                             absl::StrCat("opening CUDA device ", device)));
    return of_devices_[device] = context;
  }

 private:
  absl::Mutex mutex_;
  std::map<int, CudaContext*> of_devices_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<ForeignStream> ForeignStream::Find(const CudaFunctions& cuda, CudaStream* stream) {
  CudaContext* context = nullptr;
  RETURN_IF_ERROR(FromCuda(cuda, cuda.stream_get_context(stream, &context),
                           "asking for the context of the framework's stream"));
  ForeignStream found(cuda, stream, context);
  const ScopedContext scope(cuda, context);
  RETURN_IF_ERROR(
      FromCuda(cuda, cuda.context_get_device(&found.device_), "asking for a context's device"));
  return found;
}

absl::StatusOr<ForeignStream> ForeignStream::Of(const CudaFunctions& cuda, int device,
                                                CudaStream* stream) {
  ASSIGN_OR_RETURN(CudaContext* const context, PrimaryContexts::All().Of(cuda, device));
  ForeignStream found(cuda, stream, context);
  found.device_ = device;
  return found;
}

absl::StatusOr<int> ForeignStream::DeviceOf(const CudaFunctions& cuda, const void* address) {
  int device = 0;
  const CudaResult result =
      cuda.pointer_get_attribute(&device, CudaPointerAttribute::kDevice, Address(address));
  if (result == CudaResult::kSuccess) return device;
  return absl::InvalidArgumentError("an array is in no memory of a CUDA device");
}

absl::Status ForeignStream::Check(CudaResult result, absl::string_view what) const {
  return FromCuda(*cuda_, result, absl::StrCat(what, " of the framework on CUDA device ", device_));
}

absl::StatusOr<CudaEvent*> ForeignStream::Mark() {
  const ScopedContext scope(*cuda_, context_);
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
  const ScopedContext scope(*cuda_, context_);
  cuda_->event_destroy(event);
}

absl::Status ForeignStream::CopyAll(absl::Span<const BusCopy> copies, absl::string_view what,
                                    absl::FunctionRef<CudaResult(const BusCopy&)> start) {
  const ScopedContext scope(*cuda_, context_);
  absl::Status started;
  for (const BusCopy& copy : copies) {
    if (copy.bytes > 0 && started.ok()) started = Check(start(copy), what);
  }
  // Also after an error: a copy that has begun uses the caller's memory.
  const absl::Status done = Check(cuda_->stream_synchronize(stream_), "waiting for a stream");
  return started.ok() ? done : started;
}

absl::Status ForeignStream::CopyToHost(absl::Span<const BusCopy> copies) {
  return CopyAll(copies, "copying to the host on a stream", [this](const BusCopy& copy) {
    return cuda_->copy_to_host(copy.to, Address(copy.from), copy.bytes, stream_);
  });
}

absl::Status ForeignStream::CopyToDevice(absl::Span<const BusCopy> copies) {
  return CopyAll(copies, "copying from the host on a stream", [this](const BusCopy& copy) {
    return cuda_->copy_from_host(Address(copy.to), copy.from, copy.bytes, stream_);
  });
}

absl::Status ForeignStream::CopyOnDevice(absl::Span<const BusCopy> copies) {
  return CopyAll(copies, "copying on a stream", [this](const BusCopy& copy) {
    return cuda_->copy_on_device(Address(copy.to), Address(copy.from), copy.bytes, stream_);
  });
}

absl::StatusOr<void*> ForeignStream::Allocate(size_t bytes) {
  const ScopedContext scope(*cuda_, context_);
  CudaAddress address = 0;
  RETURN_IF_ERROR(Check(cuda_->memory_allocate(&address, bytes), "taking memory for an array"));
  return reinterpret_cast<void*>(address);
}

void ForeignStream::Free(void* memory) {
  const ScopedContext scope(*cuda_, context_);
  cuda_->memory_free(Address(memory));
}

}  // namespace hvd::collectives::nccl
