#include "tests/gpu/simulated/extension/random.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/library.h>

#include <map>
#include <mutex>

#include "tests/gpu/simulated/extension/device.h"

namespace simulated_gpu {

const at::Generator& GeneratorOf(c10::DeviceIndex device) {
  static auto* const mutex = new std::mutex;
  static auto* const generators = new std::map<c10::DeviceIndex, at::Generator>;
  const std::lock_guard<std::mutex> lock(*mutex);
  at::Generator& generator = (*generators)[device];
  if (!generator.defined()) generator = at::detail::createCPUGenerator();
  return generator;
}

namespace {

// Waits for the kernels that draw from the device's generator.
at::Generator IdleGenerator(int64_t device) {
  const auto index = static_cast<c10::DeviceIndex>(device);
  int unused = 0;
  const bool is_in_use = cuDeviceGet(&unused, 0) == CudaResult::kSuccess;
  if (is_in_use) Synchronize(index);
  return GeneratorOf(index);
}

void Seed(int64_t device, int64_t seed) {
  at::Generator generator = IdleGenerator(device);
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_current_seed(static_cast<uint64_t>(seed));
}

at::Tensor GetState(int64_t device) {
  at::Generator generator = IdleGenerator(device);
  const std::lock_guard<std::mutex> lock(generator.mutex());
  return generator.get_state();
}

void SetState(int64_t device, const at::Tensor& state) {
  at::Generator generator = IdleGenerator(device);
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_state(state);
}

TORCH_LIBRARY(simulated_gpu, library) {
  library.def("seed(int device, int seed) -> ()", &Seed);
  library.def("random_state(int device) -> Tensor", &GetState);
  library.def("set_random_state(int device, Tensor state) -> ()", &SetState);
}

}  // namespace
}  // namespace simulated_gpu
