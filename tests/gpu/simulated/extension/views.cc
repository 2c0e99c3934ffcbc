#include "tests/gpu/simulated/extension/views.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/DeviceGuard.h>

#include "tests/gpu/simulated/extension/allocator.h"
#include "tests/gpu/simulated/extension/device.h"

namespace simulated_gpu {
namespace {

using at::Tensor;
using c10::Device;
using c10::DeviceIndex;
using c10::DeviceType;

constexpr c10::DispatchKeySet kKey(c10::DispatchKey::CUDA);

DeviceIndex IndexOf(std::optional<Device> device) {
  return device.has_value() && device->has_index() ? device->index() : ChosenDevice();
}

Tensor OnBytes(const Tensor& like, void* bytes) {
  return at::from_blob(bytes, like.sizes(), like.strides(), like.options().device(at::kCPU));
}

}  // namespace

Tensor View(const Tensor& tensor) {
  if (!tensor.defined() || !tensor.is_cuda()) return tensor;
  if (tensor.numel() == 0) {
    return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kCPU));
  }
  const c10::Storage& storage = tensor.storage();
  void* const bytes = simulatedGpuFind(storage.data(), storage.nbytes());
  TORCH_CHECK(bytes != nullptr, "CUDA error: an illegal memory access was encountered");
  const ptrdiff_t offset = tensor.storage_offset() * static_cast<ptrdiff_t>(tensor.itemsize());
  return OnBytes(tensor, static_cast<char*>(bytes) + offset);
}

Tensor EmptyLike(const Tensor& like, DeviceIndex device) {
  const c10::DeviceGuard guard(Device(DeviceType::CUDA, device));
  return at::detail::empty_strided_generic(like.sizes(), like.strides(), DeviceAllocator(), kKey,
                                           like.scalar_type());
}

Tensor EmptyStrided(at::IntArrayRef sizes, at::IntArrayRef strides,
                    std::optional<at::ScalarType> type, std::optional<at::Layout>,
                    std::optional<Device> device, std::optional<bool>) {
  const c10::DeviceGuard guard(Device(DeviceType::CUDA, IndexOf(device)));
  return at::detail::empty_strided_generic(sizes, strides, DeviceAllocator(), kKey,
                                           c10::dtype_or_default(type));
}

Tensor Empty(at::IntArrayRef sizes, std::optional<at::ScalarType> type, std::optional<at::Layout>,
             std::optional<Device> device, std::optional<bool>,
             std::optional<at::MemoryFormat> format) {
  const c10::DeviceGuard guard(Device(DeviceType::CUDA, IndexOf(device)));
  return at::detail::empty_generic(sizes, DeviceAllocator(), kKey, c10::dtype_or_default(type),
                                   format);
}

const Tensor& Resize(const Tensor& self, at::IntArrayRef sizes, std::optional<at::MemoryFormat>) {
  const c10::Storage& storage = self.storage();
  const size_t bytes = (c10::multiply_integers(sizes) + self.storage_offset()) * self.itemsize();
  if (bytes > storage.nbytes()) {
    const c10::DeviceGuard guard(self.device());
    c10::DataPtr larger = DeviceAllocator()->allocate(bytes);
    if (storage.nbytes() > 0) {
      const size_t kept = storage.nbytes();
      void* const to = simulatedGpuFind(larger.get(), kept);
      const void* const from = simulatedGpuFind(storage.data(), kept);
      Enqueue(self.device().index(), [=] { std::memcpy(to, from, kept); });
    }
    storage.set_data_ptr_noswap(std::move(larger));
    storage.set_nbytes(bytes);
  }
  self.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
  return self;
}

namespace {

void ToHost(const Tensor& self, const Tensor& source, bool non_blocking) {
  simulatedGpuCountBusCopy();
  const std::shared_ptr<void> held = HoldPinned(self.storage().data());
  const Tensor to = OnBytes(self, self.mutable_data_ptr());
  Enqueue(source.device().index(), [to, from = View(source), held]() mutable { to.copy_(from); });
  // As with CUDA the host waits, unless its memory is pinned.
  if (!non_blocking || held == nullptr) Synchronize(source.device().index());
}

void FromHost(const Tensor& self, const Tensor& source, bool non_blocking) {
  simulatedGpuCountBusCopy();
  const std::shared_ptr<void> held = HoldPinned(source.storage().data());
  // Memory that is not pinned has been read when the call returns.
  const Tensor from = held == nullptr ? source.clone() : OnBytes(source, source.mutable_data_ptr());
  Enqueue(self.device().index(), [to = View(self), from, held]() mutable { to.copy_(from); });
  if (!non_blocking) Synchronize(self.device().index());
}

}  // namespace

Tensor& Copy(Tensor& self, const Tensor& source, bool non_blocking) {
  if (self.numel() == 0) return self;
  if (!self.is_cuda()) {
    ToHost(self, source, non_blocking);
  } else if (!source.is_cuda()) {
    FromHost(self, source, non_blocking);
  } else {
    const bool same = self.device() == source.device();
    if (!same) Synchronize(source.device().index());
    Enqueue(self.device().index(),
            [to = View(self), from = View(source)]() mutable { to.copy_(from); });
    if (!same) Synchronize(self.device().index());
  }
  return self;
}

}  // namespace simulated_gpu
