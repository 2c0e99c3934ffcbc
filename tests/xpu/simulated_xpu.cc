// A device for tests that is neither CPU nor CUDA: torch's device type xpu, for which a torch for
// CPUs has no kernels.
//
// - Its memory can be reached only while the device works: a host that reads or writes it dies of
// SIGSEGV.
// - Its stream, one for each device, starts nothing before somebody waits for it or copies to the
// host. So whoever
//   looks too early sees what was there before. Copies that need not block read and write the
//   host's memory that late.
// - It computes as the CPU does, on copies. What overwrites a tensor is queued; the rest waits
// first, as it has to tell
//   a shape.
//
// Compiled by conftest.py with torch's headers, loaded by the stand-in for
// intel_extension_for_pytorch.

#include <ATen/ATen.h>
#include <ATen/detail/XPUHooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <sys/mman.h>
#include <torch/library.h>
#include <unistd.h>

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace {

using at::Tensor;
using c10::Device;
using c10::DeviceIndex;
using c10::DeviceType;
using c10::Stream;

constexpr DeviceIndex kDevices = 2;

thread_local DeviceIndex chosen_device = 0;
std::recursive_mutex mutex;  // for all of the device
bool working = false;        // a thread, which holds the mutex, does what was queued

// ---- Memory: whole pages, which nobody can reach.

std::map<void*, size_t>& Mappings() {
  static auto* const mappings = new std::map<void*, size_t>;
  return *mappings;
}

void Release(void* place) {
  const std::lock_guard lock(mutex);
  munmap(place, Mappings().at(place));
  Mappings().erase(place);
}

class Memory final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    const Device device(DeviceType::XPU, chosen_device);
    if (bytes == 0) return {nullptr, device};
    const size_t page = sysconf(_SC_PAGESIZE);
    const size_t size = (bytes + page - 1) / page * page;
    void* const place = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    TORCH_CHECK(place != MAP_FAILED, "the simulated device has no memory left");
    const std::lock_guard lock(mutex);
    Mappings()[place] = size;
    return {place, place, &Release, device};
  }
  void copy_data(void*, const void*, size_t) const override {
    TORCH_CHECK(false, "the host can't copy the simulated device's memory");
  }
};

Memory memory;

// The tensor's memory as a CPU's tensor, while `use` runs. Under the mutex.
void WithMemory(const Tensor& tensor, const std::function<void(const Tensor&)>& use) {
  void* const place = tensor.storage().mutable_data();
  const size_t size = place == nullptr ? 0 : Mappings().at(place);
  if (size != 0) mprotect(place, size, PROT_READ | PROT_WRITE);
  use(at::from_blob(tensor.mutable_data_ptr(), tensor.sizes(), tensor.strides(),
                    tensor.options().device(at::kCPU)));
  if (size != 0) mprotect(place, size, PROT_NONE);
}

Tensor Read(const Tensor& from) {
  Tensor values;
  WithMemory(from, [&](const Tensor& lying) { values = lying.clone(); });
  return values;
}

void Write(const Tensor& to, const Tensor& values) {
  WithMemory(to, [&](const Tensor& lying) { lying.copy_(values); });
}

// ---- Streams.

std::array<std::deque<std::function<void()>>, kDevices>& Queues() {
  static auto* const queues = new std::array<std::deque<std::function<void()>>, kDevices>;
  return *queues;
}

void Synchronize(DeviceIndex device) {
  const std::lock_guard lock(mutex);
  if (working) return;  // within what was queued: what comes later has to wait
  const at::AutoDispatchBelowADInplaceOrView below;
  auto& queue = Queues()[device];
  while (!queue.empty()) {
    const std::function<void()> work = std::move(queue.front());
    queue.pop_front();
    working = true;
    try {
      work();
    } catch (...) {
      working = false;
      throw;
    }
    working = false;
  }
}

void Enqueue(DeviceIndex device, std::function<void()> work) {
  const std::lock_guard lock(mutex);
  if (working) {
    work();
  } else {
    Queues()[device].push_back(std::move(work));
  }
}

// What a kernel is given at its launch: the same memory, whatever becomes of the tensor; the values
// of the host's.
Tensor AtLaunch(const Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  return tensor.is_xpu() ? tensor.alias() : tensor.clone();
}

// The host's memory as it is when it is asked for. A device does not keep it, so a release that
// comes too early is reported.
std::function<Tensor()> Borrowed(const Tensor& tensor) {
  return [storage = tensor.storage().getWeakStorageImpl(), place = tensor.mutable_data_ptr(),
          sizes = tensor.sizes().vec(), strides = tensor.strides().vec(),
          options = tensor.options()] {
    TORCH_CHECK(!storage.expired(), "the host's memory was released before the device has read it");
    return at::from_blob(place, sizes, strides, options);
  };
}

Tensor& Copy(Tensor& self, const Tensor& source, bool non_blocking) {
  if (!self.is_xpu()) {
    const auto copy = [self, from = AtLaunch(source)] { self.copy_(Read(from)); };
    if (non_blocking) {
      Enqueue(source.device().index(), copy);
    } else {
      Synchronize(source.device().index());
      const std::lock_guard lock(mutex);
      copy();
    }
  } else if (source.is_xpu()) {
    if (source.device() != self.device()) Synchronize(source.device().index());
    Enqueue(self.device().index(),
            [to = AtLaunch(self), from = AtLaunch(source)] { Write(to, Read(from)); });
  } else if (non_blocking) {
    Enqueue(self.device().index(),
            [to = AtLaunch(self), from = Borrowed(source)] { Write(to, from()); });
  } else {
    Enqueue(self.device().index(),
            [to = AtLaunch(self), from = source.clone()] { Write(to, from); });
  }
  return self;
}

// ---- Operations.

Tensor EmptyStrided(at::IntArrayRef sizes, at::IntArrayRef strides,
                    std::optional<at::ScalarType> type, std::optional<at::Layout>,
                    std::optional<Device> device, std::optional<bool>) {
  const c10::DeviceGuard guard(*device);
  return at::detail::empty_strided_generic(sizes, strides, &memory,
                                           c10::DispatchKeySet(c10::DispatchKey::XPU),
                                           c10::dtype_or_default(type));
}

Tensor Empty(at::IntArrayRef sizes, std::optional<at::ScalarType> type, std::optional<at::Layout>,
             std::optional<Device> device, std::optional<bool>,
             std::optional<at::MemoryFormat> format) {
  const c10::DeviceGuard guard(*device);
  return at::detail::empty_generic(sizes, &memory, c10::DispatchKeySet(c10::DispatchKey::XPU),
                                   c10::dtype_or_default(type), format);
}

const Tensor& Resize(const Tensor& self, at::IntArrayRef sizes, std::optional<at::MemoryFormat>) {
  const c10::Storage& storage = self.storage();
  const size_t bytes = c10::multiply_integers(sizes) * self.itemsize();
  if (bytes > storage.nbytes()) {
    const c10::DeviceGuard guard(self.device());
    storage.set_data_ptr_noswap(memory.allocate(bytes));
    storage.set_nbytes(bytes);
  }
  self.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
  return self;
}

Tensor CopyFromAndResize(const Tensor& self, const Tensor& target) {
  if (self.sizes() != target.sizes()) Resize(target, self.sizes(), std::nullopt);
  return target.copy_(self);
}

Tensor& SetStorage(Tensor& self, c10::Storage storage, int64_t offset, at::IntArrayRef sizes,
                   at::IntArrayRef strides) {
  self.unsafeGetTensorImpl()->set_storage_keep_dtype(std::move(storage));
  self.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides, offset);
  return self;
}

Tensor& SetWholeStorage(Tensor& self, c10::Storage storage) {
  const int64_t count = storage.nbytes() / self.itemsize();
  return SetStorage(self, std::move(storage), 0, {count}, {1});
}

// The arguments that the operation overwrites, if it does nothing else and all of them have their
// sizes.
std::vector<size_t> Overwritten(const c10::FunctionSchema& schema,
                                const torch::jit::Stack& arguments) {
  std::vector<size_t> found;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::AliasInfo* const alias = schema.arguments()[i].alias_info();
    if (alias == nullptr || !alias->isWrite()) continue;
    if (arguments[i].isTensor() && arguments[i].toTensor().numel() == 0) return {};
    found.push_back(i);
  }
  const bool returns_them = schema.returns().empty() || schema.returns().size() == found.size();
  for (const c10::Argument& value : schema.returns()) {
    if (value.alias_info() == nullptr || !value.alias_info()->isWrite()) return {};
  }
  return returns_them ? found : std::vector<size_t>();
}

c10::IValue ArgumentAtLaunch(const c10::IValue& value) {
  if (value.isTensor()) return AtLaunch(value.toTensor());
  if (!value.isTensorList()) return value;
  c10::List<Tensor> list;
  for (const Tensor& tensor : value.toTensorVector()) list.push_back(AtLaunch(tensor));
  return list;
}

DeviceIndex DeviceOf(const torch::jit::Stack& arguments) {
  for (const c10::IValue& value : arguments) {
    if (value.isDevice() && value.toDevice().has_index()) return value.toDevice().index();
    if (value.isTensor() && value.toTensor().defined() && value.toTensor().is_xpu())
      return value.toTensor().device().index();
    if (!value.isTensorList()) continue;
    for (const Tensor& tensor : value.toTensorVector()) {
      if (tensor.is_xpu()) return tensor.device().index();
    }
  }
  return chosen_device;
}

void Fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const size_t count = op.schema().arguments().size();
  const torch::jit::Stack arguments = torch::jit::last(*stack, count).vec();
  const DeviceIndex device = DeviceOf(arguments);
  const std::vector<size_t> overwritten = Overwritten(op.schema(), arguments);
  if (overwritten.empty()) {
    Synchronize(device);
    at::native::cpu_fallback(op, stack);
    return;
  }
  torch::jit::Stack at_launch;
  for (const c10::IValue& value : arguments) at_launch.push_back(ArgumentAtLaunch(value));
  Enqueue(device, [op, at_launch]() mutable { at::native::cpu_fallback(op, &at_launch); });
  torch::jit::drop(*stack, count);
  if (op.schema().returns().empty()) return;
  for (const size_t index : overwritten) stack->push_back(arguments[index]);
}

TORCH_LIBRARY_IMPL(_, XPU, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&Fallback>());
}

TORCH_LIBRARY_IMPL(aten, XPU, library) {
  library.impl("empty.memory_format", &Empty);
  library.impl("empty_strided", &EmptyStrided);
  library.impl("copy_", &Copy);
  library.impl("_copy_from_and_resize", &CopyFromAndResize);
  library.impl("resize_", &Resize);
  library.impl("set_.source_Storage_storage_offset", &SetStorage);
  library.impl("set_.source_Storage", &SetWholeStorage);
  library.impl("as_strided", &at::native::as_strided_tensorimpl);
  library.impl("view", &at::native::view);
  library.impl("_reshape_alias", &at::native::_reshape_alias);
}

struct Guard final : c10::impl::DeviceGuardImplInterface {
  DeviceType type() const override { return DeviceType::XPU; }
  Device exchangeDevice(Device device) const override {
    const Device before = getDevice();
    setDevice(device);
    return before;
  }
  Device getDevice() const override { return Device(DeviceType::XPU, chosen_device); }
  void setDevice(Device device) const override { uncheckedSetDevice(device); }
  void uncheckedSetDevice(Device device) const noexcept override {
    if (device.has_index()) chosen_device = device.index();
  }
  Stream getStream(Device device) const override { return Stream(Stream::DEFAULT, device); }
  Stream getDefaultStream(Device device) const override { return getStream(device); }
  Stream exchangeStream(Stream stream) const override { return stream; }
  DeviceIndex deviceCount() const noexcept override { return kDevices; }
  void synchronizeDevice(DeviceIndex device) const override { Synchronize(device); }
  void synchronizeStream(const Stream& stream) const override {
    Synchronize(stream.device_index());
  }
};

C10_REGISTER_GUARD_IMPL(XPU, Guard);

struct XPUHooks final : at::XPUHooksInterface {
  void init() const override {}
  bool hasXPU() const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  DeviceIndex deviceCount() const override { return kDevices; }
  DeviceIndex getCurrentDevice() const override { return chosen_device; }
  void setCurrentDevice(DeviceIndex device) const override { chosen_device = device; }
  DeviceIndex exchangeDevice(DeviceIndex device) const override {
    return std::exchange(chosen_device, device);
  }
  c10::Allocator* getPinnedMemoryAllocator() const override {
    return c10::GetAllocator(DeviceType::CPU);
  }
  DeviceIndex maybeExchangeDevice(DeviceIndex device) const override {
    return exchangeDevice(device);
  }
};

const bool registered = [] {
  c10::SetAllocator(DeviceType::XPU, &memory);
  return true;
}();

}  // namespace

namespace at {
REGISTER_XPU_HOOKS(XPUHooks);
}  // namespace at

extern "C" {

int xpu_device_count() { return kDevices; }

int xpu_current_device() { return chosen_device; }

void xpu_set_device(int device) { chosen_device = static_cast<DeviceIndex>(device); }

void xpu_synchronize(int device) { Synchronize(static_cast<DeviceIndex>(device)); }

// How much is queued and not started.
int xpu_pending(int device) {
  const std::lock_guard lock(mutex);
  return static_cast<int>(Queues()[device].size());
}
}
