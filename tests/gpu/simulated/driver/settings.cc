#include "tests/gpu/simulated/driver/settings.h"

#include <cstdlib>
#include <sstream>

namespace simulated_gpu {
namespace {

std::string Variable(const char* name, const char* otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr || *value == '\0' ? otherwise : value;
}

// As CUDA does, ends at the first number that is not a GPU's.
std::vector<int> Visible(int count) {
  std::vector<int> devices;
  if (std::getenv("CUDA_VISIBLE_DEVICES") == nullptr) {
    for (int i = 0; i < count; ++i) devices.push_back(i);
    return devices;
  }
  std::istringstream list(Variable("CUDA_VISIBLE_DEVICES", ""));
  for (std::string number; std::getline(list, number, ',');) {
    char* end = nullptr;
    const long device = std::strtol(number.c_str(), &end, 10);  // NOLINT(runtime/int)
    if (end == number.c_str() || device < 0 || device >= count) break;
    devices.push_back(static_cast<int>(device));
  }
  return devices;
}

}  // namespace

const Settings& TheSettings() {
  static const auto* const settings = [] {
    auto* const read = new Settings;
    read->state = Variable("SIMULATED_GPU_STATE", "");
    read->memory =
        std::strtoull(Variable("SIMULATED_GPU_MEMORY", "8589934592").c_str(), nullptr, 10);
    read->devices = Visible(std::atoi(Variable("SIMULATED_GPU_COUNT", "1").c_str()));
    return read;
  }();
  return *settings;
}

}  // namespace simulated_gpu
