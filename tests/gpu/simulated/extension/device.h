// The simulated GPUs as torch sees them: the current device and stream of a thread, and work on a
// stream.
#ifndef TESTS_GPU_SIMULATED_EXTENSION_DEVICE_H_
#define TESTS_GPU_SIMULATED_EXTENSION_DEVICE_H_

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <functional>

#include "tests/gpu/simulated/driver/cuda_driver.h"

namespace simulated_gpu {

// Throws the driver's error.
void Check(CudaResult result);

c10::DeviceIndex ChosenDevice();
void ChooseDevice(c10::DeviceIndex device);
// Makes the device's context current for this thread's calls of the driver.
void Enter(c10::DeviceIndex device);

// A stream's id is its handle; the default stream's is 0.
CudaStream* HandleOf(const c10::Stream& stream);
c10::Stream StreamOf(c10::DeviceIndex device, CudaStream* handle);
// One of a fixed number, in turn.
c10::Stream StreamFromPool(c10::DeviceIndex device);
c10::Stream ChosenStream(c10::DeviceIndex device);
c10::Stream ExchangeChosenStream(const c10::Stream& stream);

// Puts `kernel` onto the current stream of the device. An exception in it is a fault of the device.
void Enqueue(c10::DeviceIndex device, std::function<void()> kernel);
// Waits for the current stream of the device.
void Synchronize(c10::DeviceIndex device);

}  // namespace simulated_gpu

#endif  // TESTS_GPU_SIMULATED_EXTENSION_DEVICE_H_
