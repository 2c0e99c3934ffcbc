#include "tests/gpu/simulated/extension/device.h"

#include <c10/util/Exception.h>

#include <array>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

namespace simulated_gpu {
namespace {

constexpr int kMostDevices = 16;
constexpr int kPool = 32;
constexpr auto kNotInitialized = static_cast<CudaResult>(3);

thread_local c10::DeviceIndex chosen_device = 0;
thread_local std::array<CudaStream*, kMostDevices> chosen_streams = {};

struct Pool {
  std::mutex mutex;
  std::array<CudaStream*, kPool> streams = {};
  size_t next = 0;
};

Pool& PoolOf(c10::DeviceIndex device) {
  static auto* const pools = new std::array<Pool, kMostDevices>;
  return (*pools)[device];
}

// Kernels use torch's own objects, which are destroyed at the process's end. So none may run then.
struct Running {
  std::mutex mutex;
  std::condition_variable changed;
  int count = 0;
  bool is_over = false;

  static Running& Get() {
    static auto* const running = new Running;
    return *running;
  }
  bool Begin() {
    const std::lock_guard<std::mutex> lock(mutex);
    if (!is_over) ++count;
    return !is_over;
  }
  void End() {
    const std::lock_guard<std::mutex> lock(mutex);
    --count;
    changed.notify_all();
  }
};

void Run(void* argument) {
  const std::unique_ptr<std::function<void()>> kernel(
      static_cast<std::function<void()>*>(argument));
  Running& running = Running::Get();
  if (!running.Begin()) return;
  try {
    (*kernel)();
  } catch (const std::exception& error) {
    simulatedGpuFault(error.what());
  }
  running.End();
}

}  // namespace

void Check(CudaResult result) {
  if (result == CudaResult::kSuccess) return;
  const char* text = nullptr;
  cuGetErrorString(result, &text);
  TORCH_CHECK(
      result != kNotInitialized,
      "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you "
      "must use the 'spawn' start method");
  TORCH_CHECK(false, "CUDA error: ", text == nullptr ? "unknown" : text);
}

c10::DeviceIndex ChosenDevice() { return chosen_device; }

void ChooseDevice(c10::DeviceIndex device) {
  if (device == chosen_device) return;
  Enter(device);
  chosen_device = device;
}

void Enter(c10::DeviceIndex device) {
  Check(cuInit(0));
  CudaContext* context = nullptr;
  Check(cuDevicePrimaryCtxRetain(&context, device));
  Check(cuCtxSetCurrent(context));
}

CudaStream* HandleOf(const c10::Stream& stream) {
  return reinterpret_cast<CudaStream*>(stream.id());
}

c10::Stream StreamOf(c10::DeviceIndex device, CudaStream* handle) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(c10::DeviceType::CUDA, device),
                     reinterpret_cast<c10::StreamId>(handle));
}

c10::Stream StreamFromPool(c10::DeviceIndex device) {
  Enter(device);
  Pool& pool = PoolOf(device);
  const std::lock_guard<std::mutex> lock(pool.mutex);
  CudaStream*& stream = pool.streams[pool.next++ % kPool];
  if (stream == nullptr) {
    Check(cuStreamCreate(&stream, hvd::collectives::nccl::kCudaStreamNonBlocking));
  }
  return StreamOf(device, stream);
}

c10::Stream ChosenStream(c10::DeviceIndex device) {
  return StreamOf(device, chosen_streams[device]);
}

c10::Stream ExchangeChosenStream(const c10::Stream& stream) {
  CudaStream* const before = std::exchange(chosen_streams[stream.device_index()], HandleOf(stream));
  return StreamOf(stream.device_index(), before);
}

void Enqueue(c10::DeviceIndex device, std::function<void()> kernel) {
  Enter(device);
  auto argument = std::make_unique<std::function<void()>>(std::move(kernel));
  Check(cuLaunchHostFunc(chosen_streams[device], &Run, argument.get()));
  argument.release();  // NOLINT(bugprone-unused-return-value): Run owns it
}

void Synchronize(c10::DeviceIndex device) {
  Enter(device);
  Check(cuStreamSynchronize(chosen_streams[device]));
}

}  // namespace simulated_gpu

extern "C" __attribute__((visibility("default"))) void simulated_gpu_end() {
  simulated_gpu::Running& running = simulated_gpu::Running::Get();
  std::unique_lock<std::mutex> lock(running.mutex);
  running.is_over = true;
  running.changed.wait(lock, [&] { return running.count == 0; });
}
