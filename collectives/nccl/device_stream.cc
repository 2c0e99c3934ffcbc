#include "collectives/nccl/device_stream.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "collectives/nccl/convert.h"

namespace hvd::collectives::nccl {
namespace {

CudaAddress Address(const void* pointer) { return reinterpret_cast<CudaAddress>(pointer); }

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceStream>> DeviceStream::Create(const CudaFunctions& cuda,
                                                                   int device) {
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
  auto stream = std::unique_ptr<DeviceStream>(new DeviceStream(cuda, device, context));
  const ScopedDevice scope(*stream);
  // Non-blocking: the stream does not synchronise with the default stream, on which frameworks
  // work.
  RETURN_IF_ERROR(stream->Check(cuda.stream_create(&stream->stream_, kCudaStreamNonBlocking),
                                "making a stream"));
  // Without timing, an event is cheaper to record and to query.
  RETURN_IF_ERROR(stream->Check(cuda.event_create(&stream->event_, kCudaEventDisableTiming),
                                "making an event"));
  ASSIGN_OR_RETURN(stream->memory_, DeviceMemory::Create(cuda, device));
  return stream;
}

DeviceStream::~DeviceStream() {
  {
    const ScopedDevice scope(*this);
    if (stream_ != nullptr) cuda_.stream_destroy(stream_);
    if (event_ != nullptr) cuda_.event_destroy(event_);
    for (const Memory& scratch : scratch_) {
      if (scratch.address != 0) cuda_.memory_free(scratch.address);
    }
  }
  cuda_.primary_context_release(device_);
}

absl::Status DeviceStream::Check(CudaResult result, absl::string_view what) const {
  return FromCuda(cuda_, result, absl::StrCat(what, " on CUDA device ", device_));
}

absl::Status DeviceStream::WaitFor(CudaEvent* event) {
  return Check(cuda_.stream_wait_event(stream_, event, 0), "waiting for an event");
}

absl::Status DeviceStream::Follow(DeviceStream& other) {
  RETURN_IF_ERROR(other.Mark());
  return WaitFor(other.event_);
}

absl::Status DeviceStream::Synchronize() {
  return Check(cuda_.stream_synchronize(stream_), "waiting for a stream");
}

absl::StatusOr<std::string> DeviceStream::Uuid() const {
  CudaUuid uuid;
  RETURN_IF_ERROR(Check(cuda_.device_get_uuid(&uuid, device_), "asking for the identity"));
  return std::string(uuid.bytes, sizeof(uuid.bytes));
}

absl::Status DeviceStream::Mark() {
  return Check(cuda_.event_record(event_, stream_), "recording an event");
}

absl::StatusOr<bool> DeviceStream::Done() {
  const CudaResult result = cuda_.event_query(event_);
  // Not an error: the only code besides success with which a query of an event answers regularly.
  if (result == CudaResult::kNotReady) return false;
  RETURN_IF_ERROR(Check(result, "an operation"));
  return true;
}

absl::StatusOr<void*> DeviceStream::Scratch(Purpose purpose, size_t bytes) {
  Memory& scratch = scratch_[purpose];
  if (bytes > scratch.bytes) {
    if (scratch.address != 0) {
      // Freed first, so that the old and the new block are never held together. cuMemFree waits for
      // the device, so no work still uses the old block.
      RETURN_IF_ERROR(Check(cuda_.memory_free(scratch.address), "freeing memory"));
    }
    scratch = {};
    RETURN_IF_ERROR(Check(cuda_.memory_allocate(&scratch.address, bytes),
                          absl::StrCat("taking ", bytes, " bytes of memory")));
    scratch.bytes = bytes;
  }
  return reinterpret_cast<void*>(scratch.address);
}

absl::StatusOr<void*> DeviceStream::AllocateHost(size_t bytes) {
  void* memory = nullptr;
  RETURN_IF_ERROR(Check(cuda_.host_allocate(&memory, bytes, 0),
                        absl::StrCat("page-locking ", bytes, " bytes of host memory")));
  return memory;
}

void DeviceStream::FreeHost(void* memory) { cuda_.host_free(memory); }

absl::Status DeviceStream::LockHost(void* memory, size_t bytes) {
  return Check(cuda_.host_register(memory, bytes, 0),
               absl::StrCat("page-locking ", bytes, " bytes of host memory"));
}

void DeviceStream::UnlockHost(void* memory) { cuda_.host_unregister(memory); }

absl::Status DeviceStream::CopyToHost(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  return Check(cuda_.copy_to_host(to, Address(from), bytes, stream_), "copying to the host");
}

absl::Status DeviceStream::CopyFromHost(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  return Check(cuda_.copy_from_host(Address(to), from, bytes, stream_), "copying from the host");
}

absl::Status DeviceStream::CopyOnDevice(void* to, const void* from, size_t bytes) {
  if (bytes == 0 || to == from) return absl::OkStatus();
  return Check(cuda_.copy_on_device(Address(to), Address(from), bytes, stream_),
               "copying on the device");
}

}  // namespace hvd::collectives::nccl
