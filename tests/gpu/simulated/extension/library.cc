// The simulated GPU's kernels, registered with torch for the device type cuda.
#include <ATen/ATen.h>
#include <torch/library.h>

#include "tests/gpu/simulated/extension/allocator.h"
#include "tests/gpu/simulated/extension/launch.h"
#include "tests/gpu/simulated/extension/views.h"

namespace simulated_gpu {
namespace {

using at::Tensor;

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

Tensor& SetTensor(Tensor& self, const Tensor& source) {
  return SetStorage(self, source.storage(), source.storage_offset(), source.sizes(),
                    source.strides());
}

void RecordStreamOf(Tensor& self, at::Stream stream) {
  RecordStream(self.storage().data_ptr(), stream);
}

// Like CUDA's kernel it draws from the device's generator; the CPU's draws from the host's.
std::tuple<Tensor, Tensor> NativeDropout(const Tensor& input, double p, std::optional<bool> train) {
  if (!train.value_or(true)) return {input.clone(), at::ones_like(input, at::kBool)};
  const Tensor mask = at::empty_like(input, at::kBool).bernoulli_(1 - p);
  const double scale = p == 1 ? 0 : 1 / (1 - p);
  return {input * mask * scale, mask};
}

TORCH_LIBRARY_IMPL(_, CUDA, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&Launch>());
}

TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  library.impl("empty.memory_format", &Empty);
  library.impl("empty_strided", &EmptyStrided);
  library.impl("copy_", &Copy);
  library.impl("_copy_from_and_resize", &CopyFromAndResize);
  library.impl("resize_", &Resize);
  library.impl("set_.source_Storage_storage_offset", &SetStorage);
  library.impl("set_.source_Storage", &SetWholeStorage);
  library.impl("set_.source_Tensor", &SetTensor);
  library.impl("as_strided", &at::native::as_strided_tensorimpl);
  library.impl("view", &at::native::view);
  library.impl("unfold", &at::native::unfold);
  library.impl("_reshape_alias", &at::native::_reshape_alias);
  library.impl("record_stream", &RecordStreamOf);
  library.impl("native_dropout", &NativeDropout);
  // torch would choose among CUDA's own kernels.
  library.impl("convolution", torch::CppFunction::makeFromBoxedFunction<&Launch>());
  library.impl("convolution_backward", torch::CppFunction::makeFromBoxedFunction<&Launch>());
}

}  // namespace
}  // namespace simulated_gpu
