// The functions for memory of the simulated libcuda.so.1.
#include <atomic>
#include <cstring>
#include <memory>
#include <vector>

#include "tests/gpu/simulated/driver/cuda_driver.h"
#include "tests/gpu/simulated/driver/handles.h"
#include "tests/gpu/simulated/driver/memory.h"

namespace {

using simulated_gpu::kIllegalAddress;
using simulated_gpu::kInvalidContext;
using simulated_gpu::kInvalidHandle;
using simulated_gpu::kInvalidValue;
using simulated_gpu::Stream;

std::atomic<long long> bus_copies{0};  // NOLINT(runtime/int): as in the header

CudaResult Current() {
  const CudaResult state = simulated_gpu::State();
  if (state != CudaResult::kSuccess) return state;
  return simulated_gpu::CurrentDevice() < 0 ? kInvalidContext : CudaResult::kSuccess;
}

CudaResult StreamFor(CudaStream* handle, std::shared_ptr<Stream>* stream) {
  const CudaResult current = Current();
  if (current != CudaResult::kSuccess) return current;
  *stream = simulated_gpu::FindStream(handle);
  return *stream == nullptr ? kInvalidHandle : CudaResult::kSuccess;
}

char* OnDevice(CudaAddress address, size_t bytes) {
  const void* const pointer = reinterpret_cast<const void*>(address);
  if (simulated_gpu::DeviceOf(pointer) < 0) return nullptr;
  return static_cast<char*>(simulated_gpu::WhereKernelsFind(pointer, bytes));
}

}  // namespace

extern "C" {

CudaResult cuPointerGetAttribute(void* value, CudaPointerAttribute attribute, CudaAddress address) {
  const int device = simulated_gpu::DeviceOf(reinterpret_cast<void*>(address));
  if (attribute != CudaPointerAttribute::kDevice || device < 0) return kInvalidValue;
  *static_cast<int*>(value) = device;
  return CudaResult::kSuccess;
}

CudaResult cuMemAlloc_v2(CudaAddress* memory, size_t bytes) {
  const CudaResult current = Current();
  if (current != CudaResult::kSuccess) return current;
  return simulated_gpu::AllocateOnDevice(simulated_gpu::CurrentDevice(), bytes, memory);
}

CudaResult cuMemFree_v2(CudaAddress memory) {
  if (memory == 0) return CudaResult::kSuccess;
  const CudaResult current = Current();
  if (current != CudaResult::kSuccess) return current;
  const int device = simulated_gpu::DeviceOf(reinterpret_cast<void*>(memory));
  if (device < 0) return kInvalidValue;
  // CUDA promises it only for some kinds of memory, and does it for all.
  simulated_gpu::SynchronizeDevice(device);
  return simulated_gpu::FreeOnDevice(memory) < 0 ? kInvalidValue : CudaResult::kSuccess;
}

CudaResult cuMemGetInfo_v2(size_t* free, size_t* total) {
  const CudaResult current = Current();
  if (current != CudaResult::kSuccess) return current;
  *free = simulated_gpu::FreeMemory(simulated_gpu::CurrentDevice());
  *total = simulated_gpu::TotalMemory(simulated_gpu::CurrentDevice());
  return CudaResult::kSuccess;
}

CudaResult cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  const CudaResult current = Current();
  if (current != CudaResult::kSuccess) return current;
  if (bytes == 0) return kInvalidValue;
  *memory = simulated_gpu::AllocatePinned(bytes);
  return *memory == nullptr ? CudaResult::kOutOfMemory : CudaResult::kSuccess;
}

CudaResult cuMemFreeHost(void* memory) {
  return simulated_gpu::FreePinned(memory) ? CudaResult::kSuccess : kInvalidValue;
}

CudaResult cuMemHostRegister_v2(void* memory, size_t bytes, unsigned) {
  const CudaResult current = Current();
  if (current != CudaResult::kSuccess) return current;
  if (memory == nullptr || bytes == 0) return kInvalidValue;
  return simulated_gpu::Pin(memory, bytes) ? CudaResult::kSuccess
                                           : simulated_gpu::kMemoryAlreadyRegistered;
}

CudaResult cuMemHostUnregister(void* memory) {
  return simulated_gpu::Unpin(memory) ? CudaResult::kSuccess : simulated_gpu::kMemoryNotRegistered;
}

// To memory that is not pinned CUDA copies before it returns.
CudaResult cuMemcpyDtoHAsync_v2(void* to, CudaAddress from, size_t bytes, CudaStream* handle) {
  std::shared_ptr<Stream> stream;
  const CudaResult found = StreamFor(handle, &stream);
  if (found != CudaResult::kSuccess || bytes == 0) return found;
  ++bus_copies;
  const char* const source = OnDevice(from, bytes);
  if (source == nullptr) return kInvalidValue;
  stream->Enqueue([=] { std::memcpy(to, source, bytes); });
  if (!simulated_gpu::IsPinned(to)) stream->Synchronize();
  return simulated_gpu::State();
}

// Memory that is not pinned may change as soon as CUDA returns.
CudaResult cuMemcpyHtoDAsync_v2(CudaAddress to, const void* from, size_t bytes,
                                CudaStream* handle) {
  std::shared_ptr<Stream> stream;
  const CudaResult found = StreamFor(handle, &stream);
  if (found != CudaResult::kSuccess || bytes == 0) return found;
  ++bus_copies;
  char* const target = OnDevice(to, bytes);
  if (target == nullptr) return kInvalidValue;
  if (simulated_gpu::IsPinned(from)) {
    stream->Enqueue([=] { std::memcpy(target, from, bytes); });
    return CudaResult::kSuccess;
  }
  const auto* const bytes_of = static_cast<const char*>(from);
  const auto kept = std::make_shared<std::vector<char>>(bytes_of, bytes_of + bytes);
  stream->Enqueue([=] { std::memcpy(target, kept->data(), bytes); });
  return CudaResult::kSuccess;
}

CudaResult cuMemcpyDtoDAsync_v2(CudaAddress to, CudaAddress from, size_t bytes,
                                CudaStream* handle) {
  std::shared_ptr<Stream> stream;
  const CudaResult found = StreamFor(handle, &stream);
  if (found != CudaResult::kSuccess || bytes == 0) return found;
  char* const target = OnDevice(to, bytes);
  const char* const source = OnDevice(from, bytes);
  if (target == nullptr || source == nullptr) return kInvalidValue;
  stream->Enqueue([=] { std::memmove(target, source, bytes); });
  return CudaResult::kSuccess;
}

void* simulatedGpuFind(const void* address, size_t bytes) {
  return simulated_gpu::WhereKernelsFind(address, bytes);
}

int simulatedGpuDeviceOf(const void* address) { return simulated_gpu::DeviceOf(address); }

void simulatedGpuCountBusCopy() { ++bus_copies; }

long long simulatedGpuBusCopies() { return bus_copies; }  // NOLINT(runtime/int): as in the header

bool simulatedGpuIsPinned(const void* address) { return simulated_gpu::IsPinned(address); }
}
