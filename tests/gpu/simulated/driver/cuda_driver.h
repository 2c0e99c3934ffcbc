// The functions of the simulated libcuda.so.1 that the real one has too, as far as the other parts
// of the simulation use them, and those of its own.
#ifndef TESTS_GPU_SIMULATED_DRIVER_CUDA_DRIVER_H_
#define TESTS_GPU_SIMULATED_DRIVER_CUDA_DRIVER_H_

#include "collectives/nccl/abi.h"

#pragma GCC visibility push(default)
// NOLINTBEGIN(readability-identifier-naming)
extern "C" {

using hvd::collectives::nccl::CudaAddress;
using hvd::collectives::nccl::CudaContext;
using hvd::collectives::nccl::CudaDevice;
using hvd::collectives::nccl::CudaEvent;
using hvd::collectives::nccl::CudaPointerAttribute;
using hvd::collectives::nccl::CudaResult;
using hvd::collectives::nccl::CudaStream;
using hvd::collectives::nccl::CudaUuid;

CudaResult cuInit(unsigned flags);
CudaResult cuGetErrorString(CudaResult error, const char** text);
CudaResult cuDriverGetVersion(int* version);

CudaResult cuDeviceGet(CudaDevice* device, int ordinal);
CudaResult cuDeviceGetCount(int* count);
CudaResult cuDeviceGetUuid(CudaUuid* uuid, CudaDevice device);
CudaResult cuDevicePrimaryCtxRetain(CudaContext** context, CudaDevice device);
CudaResult cuDevicePrimaryCtxRelease_v2(CudaDevice device);
CudaResult cuCtxPushCurrent_v2(CudaContext* context);
CudaResult cuCtxPopCurrent_v2(CudaContext** context);
CudaResult cuCtxGetCurrent(CudaContext** context);
CudaResult cuCtxSetCurrent(CudaContext* context);
CudaResult cuCtxGetDevice(CudaDevice* device);
CudaResult cuCtxSynchronize();

CudaResult cuStreamCreate(CudaStream** stream, unsigned flags);
CudaResult cuStreamDestroy_v2(CudaStream* stream);
CudaResult cuStreamGetCtx(CudaStream* stream, CudaContext** context);
CudaResult cuStreamSynchronize(CudaStream* stream);
CudaResult cuStreamQuery(CudaStream* stream);
CudaResult cuStreamWaitEvent(CudaStream* stream, CudaEvent* event, unsigned flags);
// Unlike CUDA's, `work` may use the memory of devices: kernels of the simulation are such
// functions.
CudaResult cuLaunchHostFunc(CudaStream* stream, void (*work)(void*), void* argument);

CudaResult cuEventCreate(CudaEvent** event, unsigned flags);
CudaResult cuEventDestroy_v2(CudaEvent* event);
CudaResult cuEventRecord(CudaEvent* event, CudaStream* stream);
CudaResult cuEventQuery(CudaEvent* event);
CudaResult cuEventSynchronize(CudaEvent* event);
CudaResult cuEventElapsedTime(float* milliseconds, CudaEvent* start, CudaEvent* end);

CudaResult cuPointerGetAttribute(void* value, CudaPointerAttribute attribute, CudaAddress address);
CudaResult cuMemAlloc_v2(CudaAddress* memory, size_t bytes);
CudaResult cuMemFree_v2(CudaAddress memory);
CudaResult cuMemGetInfo_v2(size_t* free, size_t* total);
CudaResult cuMemHostAlloc(void** memory, size_t bytes, unsigned flags);
CudaResult cuMemFreeHost(void* memory);
CudaResult cuMemHostRegister_v2(void* memory, size_t bytes, unsigned flags);
CudaResult cuMemHostUnregister(void* memory);
CudaResult cuMemcpyDtoHAsync_v2(void* to, CudaAddress from, size_t bytes, CudaStream* stream);
CudaResult cuMemcpyHtoDAsync_v2(CudaAddress to, const void* from, size_t bytes, CudaStream* stream);
CudaResult cuMemcpyDtoDAsync_v2(CudaAddress to, CudaAddress from, size_t bytes, CudaStream* stream);

// ---- The simulation's own, for kernels.

// Where a kernel finds bytes that are on a device or in pinned memory; nullptr if they are not.
void* simulatedGpuFind(const void* address, size_t bytes);
// -1: not on a device.
int simulatedGpuDeviceOf(const void* address);
bool simulatedGpuIsPinned(const void* address);
// The number of devices, without cuInit.
int simulatedGpuCount();
// Counts a copy between the host and a device that is none of the driver's, such as torch's own.
void simulatedGpuCountBusCopy();
// The copies between the host and a device that this process has asked for.
long long simulatedGpuBusCopies();  // NOLINT(runtime/int): read by ctypes
// For a kernel that failed: says so, and makes all later calls of the driver fail.
void simulatedGpuFault(const char* what);
}
// NOLINTEND(readability-identifier-naming)
#pragma GCC visibility pop

#endif  // TESTS_GPU_SIMULATED_DRIVER_CUDA_DRIVER_H_
