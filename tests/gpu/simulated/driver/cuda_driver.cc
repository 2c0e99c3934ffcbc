// The simulated libcuda.so.1, but for its functions for memory.
#include "tests/gpu/simulated/driver/cuda_driver.h"

#include <cstdio>
#include <cstring>

#include "tests/gpu/simulated/driver/handles.h"
#include "tests/gpu/simulated/driver/memory.h"
#include "tests/gpu/simulated/driver/settings.h"

// The driver is in use, and a context is current.
#define RETURN_UNLESS_CURRENT()                                                    \
  do {                                                                             \
    const CudaResult state = simulated_gpu::State();                               \
    if (state != CudaResult::kSuccess) return state;                               \
    if (simulated_gpu::CurrentDevice() < 0) return simulated_gpu::kInvalidContext; \
  } while (false)

namespace {

using simulated_gpu::Event;
using simulated_gpu::kInvalidContext;
using simulated_gpu::kInvalidDevice;
using simulated_gpu::kInvalidHandle;
using simulated_gpu::kInvalidValue;
using simulated_gpu::Mark;
using simulated_gpu::Stream;

constexpr int kCudaVersion = 13000;

int DeviceCount() { return static_cast<int>(simulated_gpu::TheSettings().devices.size()); }

bool IsDevice(int device) { return device >= 0 && device < DeviceCount(); }

const char* TextOf(CudaResult error) {
  switch (static_cast<int>(error)) {
    case 0:
      return "no error";
    case 1:
      return "invalid argument";
    case 2:
      return "out of memory";
    case 3:
      return "initialization error";
    case 100:
      return "no CUDA-capable device is detected";
    case 101:
      return "invalid device ordinal";
    case 201:
      return "invalid device context";
    case 400:
      return "invalid resource handle";
    case 600:
      return "device not ready";
    case 700:
      return "an illegal memory access was encountered";
    case 712:
      return "part or all of the requested memory range is already mapped";
    case 713:
      return "pointer does not correspond to a registered memory region";
    default:
      return nullptr;
  }
}

// Of the last recording; nullptr: none, which counts as one that has happened.
std::shared_ptr<Mark> MarkOf(Event& event) {
  const std::lock_guard<std::mutex> lock(event.mutex);
  return event.mark;
}

}  // namespace

extern "C" {

CudaResult cuInit(unsigned flags) {
  return flags == 0 ? simulated_gpu::Initialize() : kInvalidValue;
}

CudaResult cuGetErrorString(CudaResult error, const char** text) {
  *text = TextOf(error);
  return *text == nullptr ? kInvalidValue : CudaResult::kSuccess;
}

CudaResult cuDriverGetVersion(int* version) {
  *version = kCudaVersion;
  return CudaResult::kSuccess;
}

CudaResult cuDeviceGet(CudaDevice* device, int ordinal) {
  if (!IsDevice(ordinal)) return kInvalidDevice;
  *device = ordinal;
  return simulated_gpu::State();
}

CudaResult cuDeviceGetCount(int* count) {
  *count = DeviceCount();
  return simulated_gpu::State();
}

CudaResult cuDeviceGetUuid(CudaUuid* uuid, CudaDevice device) {
  if (!IsDevice(device)) return kInvalidDevice;
  std::memcpy(uuid->bytes, "simulated GPU  ", sizeof(uuid->bytes));
  uuid->bytes[15] = static_cast<char>(simulated_gpu::TheSettings().devices[device]);
  return simulated_gpu::State();
}

CudaResult cuDevicePrimaryCtxRetain(CudaContext** context, CudaDevice device) {
  if (!IsDevice(device)) return kInvalidDevice;
  *context = simulated_gpu::ContextOf(device);
  return simulated_gpu::State();
}

CudaResult cuDevicePrimaryCtxRelease_v2(CudaDevice device) {
  return IsDevice(device) ? simulated_gpu::State() : kInvalidDevice;
}

CudaResult cuCtxPushCurrent_v2(CudaContext* context) {
  if (simulated_gpu::DeviceOfContext(context) < 0) return kInvalidContext;
  simulated_gpu::ContextStack().push_back(context);
  return CudaResult::kSuccess;
}

CudaResult cuCtxPopCurrent_v2(CudaContext** context) {
  auto& stack = simulated_gpu::ContextStack();
  if (stack.empty()) return kInvalidContext;
  *context = stack.back();
  stack.pop_back();
  return CudaResult::kSuccess;
}

CudaResult cuCtxGetCurrent(CudaContext** context) {
  const auto& stack = simulated_gpu::ContextStack();
  *context = stack.empty() ? nullptr : stack.back();
  return CudaResult::kSuccess;
}

CudaResult cuCtxSetCurrent(CudaContext* context) {
  auto& stack = simulated_gpu::ContextStack();
  if (!stack.empty()) stack.pop_back();
  return context == nullptr ? CudaResult::kSuccess : cuCtxPushCurrent_v2(context);
}

CudaResult cuCtxGetDevice(CudaDevice* device) {
  RETURN_UNLESS_CURRENT();
  *device = simulated_gpu::CurrentDevice();
  return CudaResult::kSuccess;
}

CudaResult cuCtxSynchronize() {
  RETURN_UNLESS_CURRENT();
  simulated_gpu::SynchronizeDevice(simulated_gpu::CurrentDevice());
  return simulated_gpu::State();
}

CudaResult cuStreamCreate(CudaStream** stream, unsigned) {
  RETURN_UNLESS_CURRENT();
  *stream = simulated_gpu::MakeStream(simulated_gpu::CurrentDevice());
  return CudaResult::kSuccess;
}

CudaResult cuStreamDestroy_v2(CudaStream* stream) {
  return simulated_gpu::ReleaseStream(stream) ? CudaResult::kSuccess : kInvalidHandle;
}

CudaResult cuStreamGetCtx(CudaStream* handle, CudaContext** context) {
  const std::shared_ptr<Stream> stream = simulated_gpu::FindStream(handle);
  if (stream == nullptr) return kInvalidHandle;
  *context = simulated_gpu::ContextOf(stream->device());
  return CudaResult::kSuccess;
}

CudaResult cuStreamSynchronize(CudaStream* handle) {
  RETURN_UNLESS_CURRENT();
  const std::shared_ptr<Stream> stream = simulated_gpu::FindStream(handle);
  if (stream == nullptr) return kInvalidHandle;
  stream->Synchronize();
  return simulated_gpu::State();
}

CudaResult cuStreamQuery(CudaStream* handle) {
  RETURN_UNLESS_CURRENT();
  const std::shared_ptr<Stream> stream = simulated_gpu::FindStream(handle);
  if (stream == nullptr) return kInvalidHandle;
  return stream->IsIdle() ? simulated_gpu::State() : CudaResult::kNotReady;
}

CudaResult cuStreamWaitEvent(CudaStream* stream_handle, CudaEvent* event_handle, unsigned) {
  RETURN_UNLESS_CURRENT();
  const std::shared_ptr<Stream> stream = simulated_gpu::FindStream(stream_handle);
  const std::shared_ptr<Event> event = simulated_gpu::FindEvent(event_handle);
  if (stream == nullptr || event == nullptr) return kInvalidHandle;
  const std::shared_ptr<Mark> mark = MarkOf(*event);
  if (mark != nullptr) stream->Enqueue([mark] { mark->Await(); });
  return CudaResult::kSuccess;
}

CudaResult cuLaunchHostFunc(CudaStream* handle, void (*work)(void*), void* argument) {
  RETURN_UNLESS_CURRENT();
  const std::shared_ptr<Stream> stream = simulated_gpu::FindStream(handle);
  if (stream == nullptr) return kInvalidHandle;
  stream->Enqueue([=] { work(argument); });
  return CudaResult::kSuccess;
}

CudaResult cuEventCreate(CudaEvent** event, unsigned flags) {
  RETURN_UNLESS_CURRENT();
  const bool has_time = (flags & hvd::collectives::nccl::kCudaEventDisableTiming) == 0;
  *event = simulated_gpu::MakeEvent(simulated_gpu::CurrentDevice(), has_time);
  return CudaResult::kSuccess;
}

CudaResult cuEventDestroy_v2(CudaEvent* event) {
  return simulated_gpu::ReleaseEvent(event) ? CudaResult::kSuccess : kInvalidHandle;
}

CudaResult cuEventRecord(CudaEvent* event_handle, CudaStream* stream_handle) {
  RETURN_UNLESS_CURRENT();
  const std::shared_ptr<Stream> stream = simulated_gpu::FindStream(stream_handle);
  const std::shared_ptr<Event> event = simulated_gpu::FindEvent(event_handle);
  if (stream == nullptr || event == nullptr || stream->device() != event->device) {
    return kInvalidHandle;
  }
  const auto mark = std::make_shared<Mark>();
  {
    const std::lock_guard<std::mutex> lock(event->mutex);
    event->mark = mark;
  }
  stream->Enqueue([mark] { mark->Happen(); });
  return CudaResult::kSuccess;
}

CudaResult cuEventQuery(CudaEvent* handle) {
  const std::shared_ptr<Event> event = simulated_gpu::FindEvent(handle);
  if (event == nullptr) return kInvalidHandle;
  const std::shared_ptr<Mark> mark = MarkOf(*event);
  return mark == nullptr || mark->happened() ? simulated_gpu::State() : CudaResult::kNotReady;
}

CudaResult cuEventSynchronize(CudaEvent* handle) {
  const std::shared_ptr<Event> event = simulated_gpu::FindEvent(handle);
  if (event == nullptr) return kInvalidHandle;
  const std::shared_ptr<Mark> mark = MarkOf(*event);
  if (mark != nullptr) mark->Await();
  return simulated_gpu::State();
}

CudaResult cuEventElapsedTime(float* milliseconds, CudaEvent* start, CudaEvent* end) {
  const std::shared_ptr<Event> first = simulated_gpu::FindEvent(start);
  const std::shared_ptr<Event> last = simulated_gpu::FindEvent(end);
  if (first == nullptr || last == nullptr || !first->has_time || !last->has_time) {
    return kInvalidHandle;
  }
  const std::shared_ptr<Mark> from = MarkOf(*first), to = MarkOf(*last);
  if (from == nullptr || to == nullptr) return kInvalidHandle;
  if (!from->happened() || !to->happened()) return CudaResult::kNotReady;
  *milliseconds = std::chrono::duration<float, std::milli>(to->time() - from->time()).count();
  return CudaResult::kSuccess;
}

int simulatedGpuCount() { return DeviceCount(); }

void simulatedGpuFault(const char* what) {
  std::fprintf(stderr, "the simulated GPU: a kernel failed: %s\n", what);
  simulated_gpu::Poison(simulated_gpu::kIllegalAddress);
}
}
