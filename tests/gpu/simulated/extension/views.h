// A GPU's tensors as the CPU's kernels see them, and back.
#ifndef TESTS_GPU_SIMULATED_EXTENSION_VIEWS_H_
#define TESTS_GPU_SIMULATED_EXTENSION_VIEWS_H_

#include <ATen/core/Tensor.h>

namespace simulated_gpu {

// A tensor of the CPU on the bytes of a GPU's tensor, valid as long as these are. Other tensors are
// returned as they are.
at::Tensor View(const at::Tensor& tensor);
// A new tensor on the current stream of `device`, like `like` in shape and type.
at::Tensor EmptyLike(const at::Tensor& like, c10::DeviceIndex device);

// The kernels of torch that make tensors and copy.
at::Tensor Empty(at::IntArrayRef sizes, std::optional<at::ScalarType> type,
                 std::optional<at::Layout> layout, std::optional<c10::Device> device,
                 std::optional<bool> pin, std::optional<at::MemoryFormat> format);
at::Tensor EmptyStrided(at::IntArrayRef sizes, at::IntArrayRef strides,
                        std::optional<at::ScalarType> type, std::optional<at::Layout> layout,
                        std::optional<c10::Device> device, std::optional<bool> pin);
const at::Tensor& Resize(const at::Tensor& self, at::IntArrayRef sizes,
                         std::optional<at::MemoryFormat> format);
at::Tensor& Copy(at::Tensor& self, const at::Tensor& source, bool non_blocking);

}  // namespace simulated_gpu

#endif  // TESTS_GPU_SIMULATED_EXTENSION_VIEWS_H_
