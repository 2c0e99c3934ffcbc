#include "frameworks/tensorflow/testing/fake_tensorflow.h"

#include <cstring>
#include <memory>
#include <utility>

#include "frameworks/tensorflow/tensorflow_abi.h"

namespace hvd::frameworks::tensorflow {

struct TF_Status {
  int code = kTfOk;
  std::string message;
};

// A reference to memory: the last one frees it.
struct TF_Tensor {
  int type = kTfFloat;
  std::vector<int64_t> dims;
  std::shared_ptr<std::vector<char>> bytes;
};

struct TF_KernelBuilder {
  std::string operation;
  std::string device;
  void* (*create)(TF_OpKernelConstruction*);
  void (*compute)(void*, TF_OpKernelContext*, TF_AsyncOpKernelDoneCallback*);
  void (*destroy)(void*);
};

struct TF_OpKernelConstruction {
  const Node& node;
};

struct TF_OpKernelContext {
  TF_Status failure;
  std::vector<TF_Tensor> inputs;
  std::map<int, TF_Tensor> outputs;
};

namespace {

std::map<std::string, TF_KernelBuilder>& Kernels() {
  static auto* const kernels = new std::map<std::string, TF_KernelBuilder>;
  return *kernels;
}

TF_Tensor NewTensor(int type, const int64_t* dims, int num_dims, size_t bytes) {
  return {type, {dims, dims + num_dims}, std::make_shared<std::vector<char>>(bytes)};
}

TF_Tensor TensorOf(const Value& value) {
  const auto rows = static_cast<int64_t>(value.elements.size());
  TF_Tensor tensor = NewTensor(value.is_int32 ? kTfInt32 : kTfFloat, &rows, 1, rows * 4);
  for (int64_t i = 0; i < rows; ++i) {
    const float element = value.elements[i];
    const auto number = static_cast<int32_t>(element);
    const void* const from = value.is_int32 ? static_cast<const void*>(&number) : &element;
    std::memcpy(tensor.bytes->data() + i * 4, from, 4);
  }
  return tensor;
}

Value ValueOf(const TF_Tensor& tensor) {
  Value value{tensor.type == kTfInt32, std::vector<float>(tensor.bytes->size() / 4)};
  for (size_t i = 0; i < value.elements.size(); ++i) {
    int32_t number = 0;
    std::memcpy(value.is_int32 ? static_cast<void*>(&number) : &value.elements[i],
                tensor.bytes->data() + i * 4, 4);
    if (value.is_int32) value.elements[i] = static_cast<float>(number);
  }
  return value;
}

Outcome OutcomeOf(const TF_OpKernelContext& context) {
  Outcome outcome{context.failure.code, context.failure.message, {}};
  for (const auto& [index, tensor] : context.outputs) outcome.outputs.push_back(ValueOf(tensor));
  return outcome;
}

// Calls a C kernel as TensorFlow does: `done` is a parameter, so it is destroyed with this frame.
void ComputeAsync(const TF_KernelBuilder& kernel, void* state, TF_OpKernelContext* context,
                  std::function<void()> done) {
  kernel.compute(state, context, reinterpret_cast<TF_AsyncOpKernelDoneCallback*>(&done));
}

}  // namespace

extern "C" void fake_tensorflow_run_node(const Node& node,
                                         std::function<void(const Outcome&)> on_end) {
  const TF_KernelBuilder& kernel = Kernels().at(node.operation);
  TF_OpKernelConstruction construction{node};
  void* const state = kernel.create(&construction);
  auto* const context = new TF_OpKernelContext;
  for (const Value& input : node.inputs) context->inputs.push_back(TensorOf(input));
  ComputeAsync(kernel, state, context, [&kernel, state, context, on_end = std::move(on_end)] {
    const Outcome outcome = OutcomeOf(*context);
    delete context;
    kernel.destroy(state);
    on_end(outcome);
  });
}

#define EXPORT __attribute__((visibility("default")))

extern "C" {

EXPORT TF_Status* TF_NewStatus() { return new TF_Status; }
EXPORT void TF_DeleteStatus(TF_Status* status) { delete status; }
EXPORT void TF_SetStatus(TF_Status* status, int code, const char* message) {
  *status = {code, message};
}
EXPORT int TF_GetCode(const TF_Status* status) { return status->code; }
EXPORT const char* TF_Message(const TF_Status* status) { return status->message.c_str(); }

EXPORT int TF_TensorType(const TF_Tensor* tensor) { return tensor->type; }
EXPORT int TF_NumDims(const TF_Tensor* tensor) { return static_cast<int>(tensor->dims.size()); }
EXPORT int64_t TF_Dim(const TF_Tensor* tensor, int index) { return tensor->dims[index]; }
EXPORT size_t TF_TensorByteSize(const TF_Tensor* tensor) { return tensor->bytes->size(); }
EXPORT void* TF_TensorData(const TF_Tensor* tensor) { return tensor->bytes->data(); }
EXPORT void TF_DeleteTensor(TF_Tensor* tensor) { delete tensor; }

// Definitions and shapes are ignored, since no graph is checked.
EXPORT TF_OpDefinitionBuilder* TF_NewOpDefinitionBuilder(const char*) { return nullptr; }
EXPORT void TF_OpDefinitionBuilderAddAttr(TF_OpDefinitionBuilder*, const char*) {}
EXPORT void TF_OpDefinitionBuilderAddInput(TF_OpDefinitionBuilder*, const char*) {}
EXPORT void TF_OpDefinitionBuilderAddOutput(TF_OpDefinitionBuilder*, const char*) {}
EXPORT void TF_OpDefinitionBuilderSetIsStateful(TF_OpDefinitionBuilder*, bool) {}
EXPORT void TF_OpDefinitionBuilderSetShapeInferenceFunction(TF_OpDefinitionBuilder*,
                                                            void (*)(TF_ShapeInferenceContext*,
                                                                     TF_Status*)) {}
EXPORT void TF_RegisterOpDefinition(TF_OpDefinitionBuilder*, TF_Status*) {}
EXPORT TF_ShapeHandle* TF_NewShapeHandle() { return nullptr; }
EXPORT void TF_DeleteShapeHandle(TF_ShapeHandle*) {}
EXPORT int64_t TF_ShapeInferenceContextNumInputs(TF_ShapeInferenceContext*) { return 0; }
EXPORT void TF_ShapeInferenceContextGetInput(TF_ShapeInferenceContext*, int, TF_ShapeHandle*,
                                             TF_Status*) {}
EXPORT void TF_ShapeInferenceContextSetOutput(TF_ShapeInferenceContext*, int, TF_ShapeHandle*,
                                              TF_Status*) {}
EXPORT int TF_ShapeInferenceContextRankKnown(TF_ShapeInferenceContext*, TF_ShapeHandle*) {
  return 0;
}
EXPORT TF_ShapeHandle* TF_ShapeInferenceContextScalar(TF_ShapeInferenceContext*) { return nullptr; }
EXPORT TF_ShapeHandle* TF_ShapeInferenceContextVectorFromSize(TF_ShapeInferenceContext*, size_t) {
  return nullptr;
}
EXPORT void TF_ShapeInferenceContextSubshape(TF_ShapeInferenceContext*, TF_ShapeHandle*, int64_t,
                                             int64_t, TF_ShapeHandle*, TF_Status*) {}
EXPORT void TF_ShapeInferenceContextConcatenateShapes(TF_ShapeInferenceContext*, TF_ShapeHandle*,
                                                      TF_ShapeHandle*, TF_ShapeHandle*,
                                                      TF_Status*) {}

EXPORT TF_KernelBuilder* TF_NewAsyncKernelBuilder(const char* operation, const char* device,
                                                  void* (*create)(TF_OpKernelConstruction*),
                                                  void (*compute)(void*, TF_OpKernelContext*,
                                                                  TF_AsyncOpKernelDoneCallback*),
                                                  void (*destroy)(void*)) {
  return new TF_KernelBuilder{operation, device, create, compute, destroy};
}
EXPORT void TF_KernelBuilder_HostMemory(TF_KernelBuilder*, const char*) {}
EXPORT void TF_RegisterKernelBuilder(const char*, TF_KernelBuilder* builder, TF_Status*) {
  if (builder->device == "CPU") Kernels()[builder->operation] = *builder;
  delete builder;
}
EXPORT void TF_RunAsyncOpKernelDoneCallback(TF_AsyncOpKernelDoneCallback* done) {
  (*reinterpret_cast<std::function<void()>*>(done))();
}

EXPORT void TF_OpKernelConstruction_Failure(TF_OpKernelConstruction*, TF_Status*) {}
EXPORT void TF_OpKernelConstruction_GetAttrInt32(TF_OpKernelConstruction* construction,
                                                 const char* name, int32_t* value, TF_Status*) {
  const auto& attributes = construction->node.attributes;
  const auto found = attributes.find(name);
  *value = found == attributes.end() ? 0 : found->second;
}
EXPORT void TF_OpKernelConstruction_GetAttrFloat(TF_OpKernelConstruction*, const char*,
                                                 float* value, TF_Status*) {
  *value = 1;
}
EXPORT void TF_OpKernelConstruction_GetAttrSize(TF_OpKernelConstruction* construction, const char*,
                                                int32_t*, int32_t* bytes, TF_Status*) {
  *bytes = static_cast<int32_t>(construction->node.tensor_name.size());
}
EXPORT void TF_OpKernelConstruction_GetAttrString(TF_OpKernelConstruction* construction,
                                                  const char*, char* text, size_t bytes,
                                                  TF_Status*) {
  construction->node.tensor_name.copy(text, bytes);
}

EXPORT void TF_OpKernelContext_Failure(TF_OpKernelContext* context, TF_Status* status) {
  context->failure = *status;
}
EXPORT int TF_NumInputs(TF_OpKernelContext* context) {
  return static_cast<int>(context->inputs.size());
}
EXPORT void TF_GetInput(TF_OpKernelContext* context, int index, TF_Tensor** tensor, TF_Status*) {
  *tensor = new TF_Tensor(context->inputs.at(index));
}
EXPORT TF_Tensor* TF_AllocateOutput(TF_OpKernelContext* context, int index, int type,
                                    const int64_t* dims, int num_dims, size_t bytes, TF_Status*) {
  return new TF_Tensor(context->outputs[index] = NewTensor(type, dims, num_dims, bytes));
}
// Forwards the memory of an input, for which TensorFlow drops the context's reference.
EXPORT TF_Tensor* TF_ForwardInputOrAllocateOutput(TF_OpKernelContext* context,
                                                  const int* candidates, int, int output,
                                                  const int64_t*, int, int* forwarded, TF_Status*) {
  *forwarded = *candidates;
  return new TF_Tensor(context->outputs[output] =
                           std::exchange(context->inputs.at(*candidates), {}));
}

}  // extern "C"
}  // namespace hvd::frameworks::tensorflow
