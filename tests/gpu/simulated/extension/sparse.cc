// Sparse tensors on the simulated GPUs. The host computes on copies: few programs use them, and
// then for little.
#include <ATen/ATen.h>
#include <ATen/NativeFunctions.h>
#include <ATen/SparseTensorImpl.h>
#include <torch/library.h>

#include <vector>

#include "tests/gpu/simulated/extension/arguments.h"
#include "tests/gpu/simulated/extension/device.h"

namespace simulated_gpu {
namespace {

using at::Tensor;
using torch::jit::Stack;

struct Pair {
  Tensor given;
  Tensor on_host;
};

at::SparseTensorImpl* SparseOf(const Tensor& tensor) {
  return static_cast<at::SparseTensorImpl*>(tensor.unsafeGetTensorImpl());
}

Tensor OnHost(const Tensor& tensor) {
  if (!tensor.defined() || !tensor.is_cuda()) return tensor;
  if (!tensor.is_sparse()) return tensor.cpu();
  const at::SparseTensorImpl* const sparse = SparseOf(tensor);
  Tensor copy = at::_sparse_coo_tensor_with_dims_and_tensors(
      sparse->sparse_dim(), sparse->dense_dim(), tensor.sizes(), sparse->indices().cpu(),
      sparse->values().cpu(), tensor.options().device(at::kCPU));
  return copy._coalesced_(sparse->coalesced());
}

Tensor OnDevice(const Tensor& tensor, c10::Device device) {
  if (!tensor.defined()) return tensor;
  if (!tensor.is_sparse()) return tensor.to(device);
  const at::SparseTensorImpl* const sparse = SparseOf(tensor);
  Tensor copy = at::_sparse_coo_tensor_with_dims_and_tensors(
      sparse->sparse_dim(), sparse->dense_dim(), tensor.sizes(), sparse->indices().to(device),
      sparse->values().to(device), tensor.options().device(device));
  return copy._coalesced_(sparse->coalesced());
}

// Gives `tensor` what the host has calculated for it.
void Update(const Tensor& tensor, const Tensor& result) {
  if (!tensor.is_sparse()) {
    Tensor target = tensor;
    target.copy_(result);
    return;
  }
  const Tensor moved = OnDevice(result, tensor.device());
  at::SparseTensorImpl* const to = SparseOf(tensor);
  const at::SparseTensorImpl* const from = SparseOf(moved);
  to->resize_(from->sparse_dim(), from->dense_dim(), moved.sizes());
  to->set_indices_and_values_unsafe(from->indices(), from->values());
  to->set_coalesced(from->coalesced());
}

void LaunchSparse(const c10::OperatorHandle& op, Stack* stack) {
  const at::AutoDispatchBelowADInplaceOrView below;
  const std::vector<c10::Argument>& names = op.schema().arguments();
  const Stack given = torch::jit::last(*stack, names.size()).vec();
  torch::jit::drop(*stack, names.size());
  const c10::Device device(at::kCUDA, DeviceOfArguments(given));
  std::vector<Pair> pairs;
  Stack on_host;
  for (const c10::IValue& value : given) {
    on_host.push_back(value.isDevice() ? c10::IValue(c10::Device(at::kCPU))
                                       : Replaced(value, [&](const Tensor& tensor) {
                                           pairs.push_back({tensor, OnHost(tensor)});
                                           return pairs.back().on_host;
                                         }));
  }
  Stack results = on_host;
  op.callBoxed(&results);
  for (size_t i = 0; i < names.size(); ++i) {
    const c10::AliasInfo* const alias = names[i].alias_info();
    if (alias == nullptr || !alias->isWrite() || !given[i].isTensor()) continue;
    Update(given[i].toTensor(), on_host[i].toTensor());
  }
  for (const c10::IValue& value : results) {
    stack->push_back(Replaced(value, [&](const Tensor& result) {
      for (const Pair& pair : pairs) {
        if (result.defined() && pair.on_host.is_same(result)) return pair.given;
      }
      return OnDevice(result, device);
    }));
  }
}

TORCH_LIBRARY_IMPL(_, SparseCUDA, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&LaunchSparse>());
}

TORCH_LIBRARY_IMPL(aten, SparseCUDA, library) {
  library.impl("_indices", &at::native::_indices_sparse);
  library.impl("_values", &at::native::_values_sparse);
  library.impl("indices", &at::native::indices_sparse);
  library.impl("values", &at::native::values_sparse);
  library.impl("_nnz", &at::native::_nnz_sparse);
  library.impl("sparse_dim", &at::native::sparse_dim_sparse);
  library.impl("dense_dim", &at::native::dense_dim_sparse);
  library.impl("is_coalesced", &at::native::is_coalesced_sparse);
  library.impl("_coalesced_", &at::native::_coalesced_sparse_);
  library.impl("empty.memory_format", &at::native::empty_sparse);
  library.impl("_sparse_coo_tensor_with_dims", &at::native::new_with_dims_sparse);
  library.impl("_sparse_coo_tensor_with_dims_and_tensors",
               &at::native::new_with_dims_and_tensor_sparse_symint);
}

}  // namespace
}  // namespace simulated_gpu
