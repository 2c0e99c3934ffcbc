// The objects behind the driver's handles, and the state of a process and of a thread.
#ifndef TESTS_GPU_SIMULATED_DRIVER_HANDLES_H_
#define TESTS_GPU_SIMULATED_DRIVER_HANDLES_H_

#include <functional>
#include <memory>
#include <vector>

#include "collectives/nccl/abi.h"
#include "tests/gpu/simulated/driver/stream.h"

namespace simulated_gpu {

using hvd::collectives::nccl::CudaContext;
using hvd::collectives::nccl::CudaEvent;
using hvd::collectives::nccl::CudaResult;
using hvd::collectives::nccl::CudaStream;

inline constexpr auto kInvalidValue = static_cast<CudaResult>(1);
inline constexpr auto kNotInitialized = static_cast<CudaResult>(3);
inline constexpr auto kInvalidDevice = static_cast<CudaResult>(101);
inline constexpr auto kInvalidContext = static_cast<CudaResult>(201);
inline constexpr auto kInvalidHandle = static_cast<CudaResult>(400);
inline constexpr auto kIllegalAddress = static_cast<CudaResult>(700);
inline constexpr auto kMemoryAlreadyRegistered = static_cast<CudaResult>(712);
inline constexpr auto kMemoryNotRegistered = static_cast<CudaResult>(713);

// ---- The process.

CudaResult Initialize();
// Whether the process may use the driver. A forked child may not, as with CUDA. After Poison()
// every call fails.
CudaResult State();
// What a faulty kernel leaves: all later calls return `why`. The first one counts.
void Poison(CudaResult why);

// ---- Contexts: the primary one of each device.

CudaContext* ContextOf(int device);
// -1: it is not a context.
int DeviceOfContext(CudaContext* context);
// The contexts of this thread; the last is current.
std::vector<CudaContext*>& ContextStack();
// -1: no context is current.
int CurrentDevice();

// ---- Streams.

CudaStream* MakeStream(int device);
// nullptr, if there is no such stream. A handle of 0, 1 or 2 is the current device's default
// stream.
std::shared_ptr<Stream> FindStream(CudaStream* handle);
// Its work is done all the same. Whether there was one.
bool ReleaseStream(CudaStream* handle);
// Waits for the work of all streams of a device.
void SynchronizeDevice(int device);

// ---- Events.

CudaEvent* MakeEvent(int device, bool has_time);
std::shared_ptr<Event> FindEvent(CudaEvent* handle);
bool ReleaseEvent(CudaEvent* handle);

}  // namespace simulated_gpu

#endif  // TESTS_GPU_SIMULATED_DRIVER_HANDLES_H_
