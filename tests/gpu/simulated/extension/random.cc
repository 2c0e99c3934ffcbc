#include "tests/gpu/simulated/extension/random.h"

#include <ATen/CPUGeneratorImpl.h>

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

}  // namespace simulated_gpu

// What the device does after this draws from the new seed.
extern "C" __attribute__((visibility("default"))) void simulated_gpu_seed(int device,
                                                                          uint64_t seed) {
  const auto index = static_cast<c10::DeviceIndex>(device);
  int unused = 0;
  const bool is_in_use = cuDeviceGet(&unused, 0) == CudaResult::kSuccess;
  if (is_in_use) simulated_gpu::Synchronize(index);
  at::Generator generator = simulated_gpu::GeneratorOf(index);
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_current_seed(seed);
}
