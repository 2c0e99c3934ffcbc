// The settings of the simulated GPUs, from the environment.
#ifndef TESTS_GPU_SIMULATED_DRIVER_SETTINGS_H_
#define TESTS_GPU_SIMULATED_DRIVER_SETTINGS_H_

#include <cstddef>
#include <string>
#include <vector>

namespace simulated_gpu {

struct Settings {
  // SIMULATED_GPU_STATE: the folder of the accounts of memory that all processes share. Empty: each
  // process has its own.
  std::string state;
  // SIMULATED_GPU_MEMORY: bytes of each GPU.
  size_t memory = size_t{8} << 30;
  // The GPUs that this process sees, by their numbers on the machine: SIMULATED_GPU_COUNT of them,
  // or those of CUDA_VISIBLE_DEVICES.
  std::vector<int> devices;
};

// Read once.
const Settings& TheSettings();

}  // namespace simulated_gpu

#endif  // TESTS_GPU_SIMULATED_DRIVER_SETTINGS_H_
