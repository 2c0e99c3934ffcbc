// The arguments of torch's operations as values.
#ifndef TESTS_GPU_SIMULATED_EXTENSION_ARGUMENTS_H_
#define TESTS_GPU_SIMULATED_EXTENSION_ARGUMENTS_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include <functional>

namespace simulated_gpu {

// The value with each of its tensors replaced: itself, or those of a list.
c10::IValue Replaced(const c10::IValue& value,
                     const std::function<at::Tensor(const at::Tensor&)>& replace);
// The device of the first tensor that is on one, or that is named; otherwise the current one.
c10::DeviceIndex DeviceOfArguments(const torch::jit::Stack& arguments);

}  // namespace simulated_gpu

#endif  // TESTS_GPU_SIMULATED_EXTENSION_ARGUMENTS_H_
