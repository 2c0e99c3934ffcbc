#include "tests/gpu/simulated/extension/arguments.h"

#include <optional>

#include "tests/gpu/simulated/extension/device.h"

namespace simulated_gpu {
namespace {

using at::Tensor;
using c10::DeviceIndex;
using c10::IValue;

// Calls `use` for each tensor of a value: itself, or those of a list.
void ForEachTensor(const IValue& value, const std::function<void(const Tensor&)>& use) {
  if (value.isTensor()) return use(value.toTensor());
  if (value.isTensorList()) {
    for (const Tensor& tensor : value.toTensorVector()) use(tensor);
  } else if (value.isOptionalTensorList()) {
    for (const std::optional<Tensor>& tensor : value.toOptionalTensorVector()) {
      if (tensor.has_value()) use(*tensor);
    }
  }
}

}  // namespace

IValue Replaced(const IValue& value, const std::function<Tensor(const Tensor&)>& replace) {
  if (value.isTensor()) return replace(value.toTensor());
  if (value.isTensorList()) {
    c10::List<Tensor> list;
    for (const Tensor& tensor : value.toTensorVector()) list.push_back(replace(tensor));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<Tensor>> list;
    for (const std::optional<Tensor>& tensor : value.toOptionalTensorVector()) {
      list.push_back(tensor.has_value() ? std::optional<Tensor>(replace(*tensor)) : std::nullopt);
    }
    return list;
  }
  return value;
}

DeviceIndex DeviceOfArguments(const torch::jit::Stack& arguments) {
  std::optional<DeviceIndex> found;
  for (const IValue& value : arguments) {
    if (value.isDevice() && value.toDevice().has_index()) found = value.toDevice().index();
    ForEachTensor(value, [&](const Tensor& tensor) {
      if (!found.has_value() && tensor.defined() && tensor.is_cuda()) {
        found = tensor.device().index();
      }
    });
  }
  return found.value_or(ChosenDevice());
}

}  // namespace simulated_gpu
