#include "frameworks/tensorflow/operations.h"

#include <cstdint>
#include <memory>

#include "frameworks/tensorflow/element_types.h"
#include "frameworks/tensorflow/tensorflow_library.h"

namespace hvd::frameworks::tensorflow {
namespace {

// TensorFlow's number for the size of an unknown dimension.
constexpr size_t kUnknownSize = static_cast<size_t>(-1);

struct DeleteShape {
  void operator()(TF_ShapeHandle* shape) const { Tf().DeleteShapeHandle(shape); }
};
using Shape = std::unique_ptr<TF_ShapeHandle, DeleteShape>;

bool IsOk(const TF_Status* status) { return Tf().GetCode(status) == kTfOk; }

// Each output has the shape of the input with the same index.
void SameShapes(TF_ShapeInferenceContext* context, TF_Status* status) {
  const int count = static_cast<int>(Tf().ShapeInferenceContextNumInputs(context));
  for (int i = 0; i < count && IsOk(status); ++i) {
    const Shape shape(Tf().NewShapeHandle());
    Tf().ShapeInferenceContextGetInput(context, i, shape.get(), status);
    if (IsOk(status)) Tf().ShapeInferenceContextSetOutput(context, i, shape.get(), status);
  }
}

// Output `index` has the shape of input `index`, except for the number of rows, which depends on
// the other ranks and so is unknown.
void OtherRows(TF_ShapeInferenceContext* context, int index, TF_Status* status) {
  const Shape shape(Tf().NewShapeHandle());
  Tf().ShapeInferenceContextGetInput(context, index, shape.get(), status);
  if (!IsOk(status)) return;
  // Nothing can be cut off an unknown rank; Subshape would be an error while tracing.
  if (!Tf().ShapeInferenceContextRankKnown(context, shape.get())) {
    return Tf().ShapeInferenceContextSetOutput(context, index, shape.get(), status);
  }
  // The C API can't change one dimension, so the shape is put together: [unknown] + shape[1:].
  const Shape rows(Tf().ShapeInferenceContextVectorFromSize(context, kUnknownSize));
  const Shape rest(Tf().NewShapeHandle());
  const Shape whole(Tf().NewShapeHandle());
  Tf().ShapeInferenceContextSubshape(context, shape.get(), 1, INT64_MAX, rest.get(), status);
  if (!IsOk(status)) return;
  Tf().ShapeInferenceContextConcatenateShapes(context, rows.get(), rest.get(), whole.get(), status);
  if (IsOk(status)) Tf().ShapeInferenceContextSetOutput(context, index, whole.get(), status);
}

void OtherRowsOfAll(TF_ShapeInferenceContext* context, TF_Status* status) {
  const int count = static_cast<int>(Tf().ShapeInferenceContextNumInputs(context));
  for (int i = 0; i < count && IsOk(status); ++i) OtherRows(context, i, status);
}

void RowsAndSplits(TF_ShapeInferenceContext* context, TF_Status* status) {
  OtherRows(context, 0, status);
  const Shape splits(Tf().ShapeInferenceContextVectorFromSize(context, kUnknownSize));
  if (IsOk(status)) Tf().ShapeInferenceContextSetOutput(context, 1, splits.get(), status);
}

void OneNumber(TF_ShapeInferenceContext* context, TF_Status* status) {
  const Shape scalar(Tf().ShapeInferenceContextScalar(context));
  Tf().ShapeInferenceContextSetOutput(context, 0, scalar.get(), status);
}

auto ShapesOf(int op) {
  switch (op) {
    case HVD_ALLREDUCE:
    case HVD_BROADCAST:
      return &SameShapes;
    case HVD_ALLTOALL:
      return &RowsAndSplits;
    case HVD_JOIN:
      return &OneNumber;
    default:
      return &OtherRowsOfAll;
  }
}

std::string Register(const OperationDefinition& definition) {
  TF_OpDefinitionBuilder* const builder = Tf().NewOpDefinitionBuilder(definition.name);
  const auto add_attribute = [builder](const std::string& spec) {
    Tf().OpDefinitionBuilderAddAttr(builder, spec.c_str());
  };
  if (definition.types != nullptr) {
    const std::string types = definition.types;
    add_attribute(definition.op == HVD_ALLTOALL ? "T: " + types : "T: list(" + types + ") >= 1");
  }
  add_attribute("tensor_name: string");
  add_attribute("process_set: int = 0");
  add_attribute("waits: int = 0");
  if (definition.reduces) {
    add_attribute("reduction: int");
    add_attribute("prescale_factor: float = 1.0");
    add_attribute("postscale_factor: float = 1.0");
  }
  if (definition.op == HVD_BROADCAST) add_attribute("root_rank: int");
  for (const char* input : definition.inputs) Tf().OpDefinitionBuilderAddInput(builder, input);
  for (const char* output : definition.outputs) Tf().OpDefinitionBuilderAddOutput(builder, output);
  // Stateful operations are neither merged with equal ones nor dropped nor folded into constants:
  // either would leave the other ranks waiting.
  Tf().OpDefinitionBuilderSetIsStateful(builder, true);
  Tf().OpDefinitionBuilderSetShapeInferenceFunction(builder, ShapesOf(definition.op));
  const Status status;
  Tf().RegisterOpDefinition(builder, status.get());
  return status.ok() ? "" : status.message();
}

}  // namespace

const std::vector<OperationDefinition>& Operations() {
  static const auto* const operations = new std::vector<OperationDefinition>{
      {"HorovodAllreduce", HVD_ALLREDUCE, kReducedTypes, {"tensors: T"}, {"reduced: T"}, true},
      {"HorovodAllgather", HVD_ALLGATHER, kMovedTypes, {"tensors: T"}, {"gathered: T"}},
      {"HorovodBroadcast", HVD_BROADCAST, kMovedTypes, {"tensors: T"}, {"received: T"}},
      {"HorovodAlltoall",
       HVD_ALLTOALL,
       kMovedTypes,
       {"tensor: T", "splits: int32"},
       {"received: T", "received_splits: int32"}},
      {"HorovodReducescatter",
       HVD_REDUCESCATTER,
       kReducedTypes,
       {"tensors: T"},
       {"reduced: T"},
       true},
      {"HorovodJoin", HVD_JOIN, nullptr, {}, {"last_rank: int32"}},
  };
  return *operations;
}

std::string RegisterOperations() {
  for (const OperationDefinition& definition : Operations()) {
    if (std::string error = Register(definition); !error.empty()) return error;
  }
  return "";
}

}  // namespace hvd::frameworks::tensorflow
