// The memory of the simulated GPUs, and the host's memory that is pinned for them.
#ifndef TESTS_GPU_SIMULATED_DRIVER_MEMORY_H_
#define TESTS_GPU_SIMULATED_DRIVER_MEMORY_H_

#include <cstddef>

#include "collectives/nccl/abi.h"

namespace simulated_gpu {

// A device address is one that the host can't use: it dies of SIGSEGV, as with a real GPU. The
// bytes lie at another address, which kernels ask for. All functions are thread-safe.

// Returns kSuccess, kOutOfMemory or kInvalidValue.
hvd::collectives::nccl::CudaResult AllocateOnDevice(int device, size_t bytes,
                                                    hvd::collectives::nccl::CudaAddress* address);
// Returns the device, or -1: nothing was allocated at `address`.
int FreeOnDevice(hvd::collectives::nccl::CudaAddress address);

void* AllocatePinned(size_t bytes);
bool FreePinned(void* address);
// For memory that is the caller's.
bool Pin(void* address, size_t bytes);
bool Unpin(void* address);
bool IsPinned(const void* address);

// Where kernels find [address, address + bytes), which is in one allocation of a device, or in
// pinned memory. nullptr: it is neither.
void* WhereKernelsFind(const void* address, size_t bytes);
// The device that an address belongs to; -1: none.
int DeviceOf(const void* address);

size_t FreeMemory(int device);
size_t TotalMemory(int device);

}  // namespace simulated_gpu

#endif  // TESTS_GPU_SIMULATED_DRIVER_MEMORY_H_
