#include "tests/gpu/simulated/extension/launch.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/DeviceGuard.h>

#include <optional>
#include <vector>

#include "tests/gpu/simulated/extension/arguments.h"
#include "tests/gpu/simulated/extension/device.h"
#include "tests/gpu/simulated/extension/random.h"
#include "tests/gpu/simulated/extension/views.h"

namespace simulated_gpu {
namespace {

using at::Tensor;
using c10::DeviceIndex;
using c10::FunctionSchema;
using c10::IValue;
using c10::OperatorHandle;
using torch::jit::Stack;

// One operation at its launch: what its kernel is given, which holds no tensor of the caller's. So
// a tensor's memory may be released, and given to another, before its kernel has run, as with CUDA.
class Kernel {
 public:
  Kernel(const OperatorHandle& op, const Stack& given, DeviceIndex device)
      : op_(op), given_(given), device_(device) {
    const std::vector<c10::Argument>& names = op.schema().arguments();
    for (size_t i = 0; i < given.size(); ++i) arguments_.push_back(AtLaunch(names[i], given[i]));
  }

  // The results are arguments, which are overwritten.
  void QueueOverwriting(const std::vector<size_t>& overwritten, Stack* results) {
    Enqueue(device_, [op = op_, arguments = arguments_] {
      Stack stack = arguments;
      Call(op, &stack);
    });
    if (op_.schema().returns().empty()) return;
    for (const size_t index : overwritten) results->push_back(given_[index]);
  }

  // The results are new tensors. Whether their sizes could be told.
  bool QueueReturning(Stack* results) {
    const std::optional<Stack> shapes = Shapes();
    if (!shapes.has_value()) return false;
    std::vector<Tensor> views;
    for (const IValue& shape : *shapes) {
      const Tensor& like = shape.toTensor();
      const Tensor result = like.defined() ? EmptyLike(like, device_) : Tensor();
      views.push_back(View(result));
      results->emplace_back(result);
    }
    Enqueue(device_, [op = op_, arguments = arguments_, views] {
      Stack stack = arguments;
      Call(op, &stack);
      for (size_t i = 0; i < views.size(); ++i) {
        const Tensor& computed = stack[i].toTensor();
        if (!views[i].defined() && !computed.defined()) continue;
        TORCH_CHECK(computed.defined() && computed.sizes() == views[i].sizes(), op.operator_name(),
                    ": another size than torch told beforehand");
        views[i].copy_(computed);
      }
    });
    return true;
  }

  void Run(Stack* results) {
    Synchronize(device_);
    PrepareResizing();
    Stack stack = arguments_;
    Call(op_, &stack);
    GiveResized();
    for (const IValue& value : stack) {
      results->push_back(
          Replaced(value, [this](const Tensor& tensor) { return OnDevice(tensor); }));
    }
  }

 private:
  static void Call(const OperatorHandle& op, Stack* stack) {
    const at::AutoDispatchBelowADInplaceOrView below;
    op.callBoxed(stack);
  }

  IValue AtLaunch(const c10::Argument& name, const IValue& value) {
    if (value.isDevice()) return c10::Device(at::kCPU);
    const bool is_generator = name.type()->str().find("Generator") != std::string::npos;
    if (is_generator && value.isNone()) return GeneratorOf(device_);
    return Replaced(value, [this](const Tensor& tensor) {
      if (!tensor.defined()) return tensor;
      Tensor view = tensor.is_cuda() ? View(tensor) : tensor.clone();
      views_.push_back({tensor, view});
      return view;
    });
  }

  // What the results look like, if torch can tell without their values.
  std::optional<Stack> Shapes() const {
    for (const c10::Argument& result : op_.schema().returns()) {
      if (result.alias_info() != nullptr || !result.type()->isSubtypeOf(*c10::TensorType::get())) {
        return std::nullopt;
      }
    }
    if (!op_.hasKernelForDispatchKey(c10::DispatchKey::Meta)) return std::nullopt;
    Stack stack;
    for (const IValue& value : given_) {
      if (value.isDevice()) return std::nullopt;
      stack.push_back(Replaced(value, &ShapeOf));
    }
    try {
      Call(op_, &stack);
    } catch (const std::exception&) {
      return std::nullopt;
    }
    return stack;
  }

  static Tensor ShapeOf(const Tensor& tensor) {
    if (!tensor.defined() || (!tensor.is_cuda() && tensor.dim() == 0)) return tensor;
    return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kMeta));
  }

  // An argument without elements may be one that the operation is to resize: it gets a tensor that
  // can be.
  void PrepareResizing() {
    const std::vector<c10::Argument>& names = op_.schema().arguments();
    for (size_t i = 0; i < given_.size(); ++i) {
      const c10::AliasInfo* const alias = names[i].alias_info();
      if (alias == nullptr || !alias->isWrite() || !given_[i].isTensor()) continue;
      const Tensor& tensor = given_[i].toTensor();
      if (!tensor.defined() || !tensor.is_cuda() || tensor.numel() != 0) continue;
      const Tensor resizable = at::empty(tensor.sizes(), tensor.options().device(at::kCPU));
      views_.push_back({tensor, resizable});
      resized_.push_back({tensor, resizable});
      arguments_[i] = resizable;
    }
  }

  void GiveResized() {
    for (auto& [tensor, result] : resized_) {
      if (result.numel() == 0 && tensor.sizes() == result.sizes()) continue;
      Resize(tensor, result.sizes(), std::nullopt);
      Tensor target = tensor;
      target.copy_(result);
    }
  }

  // A result of the CPU's kernel as the caller's: the argument itself, or a view of it, or a new
  // tensor.
  Tensor OnDevice(const Tensor& result) const {
    if (!result.defined()) return result;
    for (const Pair& pair : views_) {
      if (pair.view.is_same(result)) return pair.tensor;
    }
    for (const Pair& pair : views_) {
      if (!pair.tensor.is_cuda() || result.numel() == 0) continue;
      if (!result.has_storage() || !pair.view.has_storage()) continue;
      if (!result.is_alias_of(pair.view)) continue;
      const int64_t offset = (static_cast<const char*>(result.const_data_ptr()) -
                              static_cast<const char*>(pair.view.const_data_ptr())) /
                             static_cast<int64_t>(result.itemsize());
      return pair.tensor.as_strided(result.sizes(), result.strides(),
                                    pair.tensor.storage_offset() + offset);
    }
    const Tensor copy = EmptyLike(result, device_);
    // Nothing else uses its memory: the stream has been waited for.
    if (copy.numel() > 0) View(copy).copy_(result);
    return copy;
  }

  struct Pair {
    Tensor tensor;
    Tensor view;
  };

  const OperatorHandle op_;
  const Stack given_;
  const DeviceIndex device_;
  Stack arguments_;
  std::vector<Pair> views_, resized_;
};

// The arguments that the operation overwrites, if it does nothing else and all of them have their
// sizes.
std::vector<size_t> Overwritten(const FunctionSchema& schema, const Stack& arguments) {
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

}  // namespace

void Launch(const OperatorHandle& op, Stack* stack) {
  TORCH_CHECK_NOT_IMPLEMENTED(op.hasComputedKernelForDispatchKey(c10::DispatchKey::CPU),
                              op.operator_name(), ": the simulated GPU has only the CPU's kernels");
  const size_t count = op.schema().arguments().size();
  const Stack arguments = torch::jit::last(*stack, count).vec();
  torch::jit::drop(*stack, count);
  const DeviceIndex device = DeviceOfArguments(arguments);
  const c10::DeviceGuard guard(c10::Device(c10::DeviceType::CUDA, device));
  Kernel kernel(op, arguments, device);
  const std::vector<size_t> overwritten = Overwritten(op.schema(), arguments);
  if (!overwritten.empty()) {
    kernel.QueueOverwriting(overwritten, stack);
  } else if (!kernel.QueueReturning(stack)) {
    kernel.Run(stack);
  }
}

}  // namespace simulated_gpu
