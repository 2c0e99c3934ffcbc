// What torch asks of a device type: devices, streams and events, for the type cuda.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Exception.h>

#include <new>

#include "tests/gpu/simulated/extension/allocator.h"
#include "tests/gpu/simulated/extension/device.h"
#include "tests/gpu/simulated/extension/random.h"

namespace simulated_gpu {
namespace {

using c10::Device;
using c10::DeviceIndex;
using c10::DeviceType;
using c10::Stream;

CudaEvent* EventOf(void* event) { return static_cast<CudaEvent*>(event); }

DeviceIndex Count() { return static_cast<DeviceIndex>(simulatedGpuCount()); }

struct Guard final : c10::impl::DeviceGuardImplInterface {
  DeviceType type() const override { return DeviceType::CUDA; }
  Device exchangeDevice(Device device) const override {
    const Device before = getDevice();
    setDevice(device);
    return before;
  }
  Device getDevice() const override { return Device(DeviceType::CUDA, ChosenDevice()); }
  void setDevice(Device device) const override {
    if (device.has_index()) ChooseDevice(device.index());
  }
  void uncheckedSetDevice(Device device) const noexcept override {
    try {
      setDevice(device);
    } catch (const c10::Error&) {  // NOLINT(bugprone-empty-catch): as the name says
    }
  }
  DeviceIndex deviceCount() const noexcept override { return Count(); }
  void synchronizeDevice(const DeviceIndex device) const override {
    Enter(device);
    Check(cuCtxSynchronize());
  }

  Stream getStream(Device device) const override {
    return ChosenStream(device.has_index() ? device.index() : ChosenDevice());
  }
  Stream getDefaultStream(Device device) const override {
    return StreamOf(device.has_index() ? device.index() : ChosenDevice(), nullptr);
  }
  Stream getNewStream(Device device, int) const override {
    return StreamFromPool(device.has_index() ? device.index() : ChosenDevice());
  }
  Stream getStreamFromGlobalPool(Device device, bool) const override {
    return getNewStream(device, 0);
  }
  Stream exchangeStream(Stream stream) const override { return ExchangeChosenStream(stream); }
  void* getStreamNativeHandle(const Stream stream) const override { return HandleOf(stream); }
  bool queryStream(const Stream& stream) const override {
    Enter(stream.device_index());
    return IsDone(cuStreamQuery(HandleOf(stream)));
  }
  void synchronizeStream(const Stream& stream) const override {
    Enter(stream.device_index());
    Check(cuStreamSynchronize(HandleOf(stream)));
  }

  void record(void** event, const Stream& stream, const DeviceIndex device,
              const c10::EventFlag flag) const override {
    TORCH_CHECK(device == -1 || device == stream.device_index(),
                "an event can't be recorded on a stream of another device");
    Enter(stream.device_index());
    if (*event == nullptr) {
      CudaEvent* made = nullptr;
      const bool has_time = flag == c10::EventFlag::BACKEND_DEFAULT;
      Check(cuEventCreate(&made, has_time ? 0 : hvd::collectives::nccl::kCudaEventDisableTiming));
      *event = made;
    }
    Check(cuEventRecord(EventOf(*event), HandleOf(stream)));
  }
  void block(void* event, const Stream& stream) const override {
    if (event == nullptr) return;
    Enter(stream.device_index());
    Check(cuStreamWaitEvent(HandleOf(stream), EventOf(event), 0));
  }
  bool queryEvent(void* event) const override {
    return event == nullptr || IsDone(cuEventQuery(EventOf(event)));
  }
  void synchronizeEvent(void* event) const override {
    if (event != nullptr) Check(cuEventSynchronize(EventOf(event)));
  }
  double elapsedTime(void* first, void* last, const DeviceIndex) const override {
    float milliseconds = 0;
    Check(cuEventElapsedTime(&milliseconds, EventOf(first), EventOf(last)));
    return milliseconds;
  }
  void destroyEvent(void* event, const DeviceIndex) const noexcept override {
    if (event != nullptr) cuEventDestroy_v2(EventOf(event));
  }
  void recordDataPtrOnStream(const c10::DataPtr& data, const Stream& stream) const override {
    RecordStream(data, stream);
  }

 private:
  static bool IsDone(CudaResult result) {
    if (result != CudaResult::kNotReady) Check(result);
    return result == CudaResult::kSuccess;
  }
};

C10_REGISTER_GUARD_IMPL(CUDA, Guard);

struct Hooks final : at::CUDAHooksInterface {
  void init() const override {}
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return Count() > 0; }
  bool hasCUDA() const override { return Count() > 0; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  DeviceIndex deviceCount() const override { return Count(); }
  int getNumGPUs() const override { return Count(); }
  DeviceIndex current_device() const override { return ChosenDevice(); }
  DeviceIndex getCurrentDevice() const override { return ChosenDevice(); }
  void setCurrentDevice(DeviceIndex device) const override { ChooseDevice(device); }
  DeviceIndex exchangeDevice(DeviceIndex device) const override {
    const DeviceIndex before = ChosenDevice();
    if (device >= 0) ChooseDevice(device);
    return before;
  }
  DeviceIndex maybeExchangeDevice(DeviceIndex device) const override {
    return exchangeDevice(device);
  }
  void deviceSynchronize(DeviceIndex device) const override {
    Enter(device);
    Check(cuCtxSynchronize());
  }
  long versionCuDNN() const override { return 0; }         // NOLINT(runtime/int): torch's type
  long versionRuntimeCuDNN() const override { return 0; }  // NOLINT(runtime/int)

  bool isPinnedPtr(const void* data) const override { return simulatedGpuIsPinned(data); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return PinnedAllocator(); }
  c10::Allocator* getCUDADeviceAllocator() const override { return DeviceAllocator(); }
  Device getDeviceFromPtr(void* data) const override {
    return Device(DeviceType::CUDA, static_cast<DeviceIndex>(simulatedGpuDeviceOf(data)));
  }
  const at::Generator& getDefaultGenerator(DeviceIndex device) const override {
    return GeneratorOf(device < 0 ? ChosenDevice() : device);
  }
  at::Generator getNewGenerator(DeviceIndex) const override {
    return at::detail::createCPUGenerator();
  }
};

// torch makes its hooks for CUDA while it is imported, before it loads this. They have no state, so
// the object becomes another where it is.
const bool registered = [] {
  static_assert(sizeof(Hooks) == sizeof(at::CUDAHooksInterface));
  new (const_cast<at::CUDAHooksInterface*>(&at::detail::getCUDAHooks())) Hooks();
  c10::SetAllocator(DeviceType::CUDA, DeviceAllocator());
  return true;
}();

}  // namespace
}  // namespace simulated_gpu

#pragma GCC visibility push(default)
extern "C" {

int simulated_gpu_count() { return simulatedGpuCount(); }
}
#pragma GCC visibility pop
