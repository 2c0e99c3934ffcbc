// The launch of torch's operations on the simulated GPUs: the CPU's kernels compute, on a stream.
#ifndef TESTS_GPU_SIMULATED_EXTENSION_LAUNCH_H_
#define TESTS_GPU_SIMULATED_EXTENSION_LAUNCH_H_

#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace simulated_gpu {

// Runs an operation that has no kernel of its own for the device. It is queued, if it overwrites
// tensors whose sizes are known, or if torch can tell the sizes of its results beforehand.
// Otherwise it waits for the stream, as the host has to know a size or a value.
void Launch(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace simulated_gpu

#endif  // TESTS_GPU_SIMULATED_EXTENSION_LAUNCH_H_
