// The random numbers of the simulated GPUs.
#ifndef TESTS_GPU_SIMULATED_EXTENSION_RANDOM_H_
#define TESTS_GPU_SIMULATED_EXTENSION_RANDOM_H_

#include <ATen/core/Generator.h>

namespace simulated_gpu {

// A generator for each device, so that kernels do not draw from the host's.
const at::Generator& GeneratorOf(c10::DeviceIndex device);

}  // namespace simulated_gpu

#endif  // TESTS_GPU_SIMULATED_EXTENSION_RANDOM_H_
