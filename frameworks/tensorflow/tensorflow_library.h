// The function table of TensorFlow's C API in this process, and owners of its objects.
#ifndef FRAMEWORKS_TENSORFLOW_TENSORFLOW_LIBRARY_H_
#define FRAMEWORKS_TENSORFLOW_TENSORFLOW_LIBRARY_H_

#include <memory>
#include <string>

#include "frameworks/tensorflow/tensorflow_abi.h"

namespace hvd::frameworks::tensorflow {

// The functions, named without their prefix "TF_". Immutable once found.
struct TensorFlow {
  decltype(&TF_NewStatus) NewStatus = nullptr;
  decltype(&TF_DeleteStatus) DeleteStatus = nullptr;
  decltype(&TF_SetStatus) SetStatus = nullptr;
  decltype(&TF_GetCode) GetCode = nullptr;
  decltype(&TF_Message) Message = nullptr;
  decltype(&TF_TensorType) TensorType = nullptr;
  decltype(&TF_NumDims) NumDims = nullptr;
  decltype(&TF_Dim) Dim = nullptr;
  decltype(&TF_TensorByteSize) TensorByteSize = nullptr;
  decltype(&TF_TensorData) TensorData = nullptr;
  decltype(&TF_DeleteTensor) DeleteTensor = nullptr;
  decltype(&TF_NewOpDefinitionBuilder) NewOpDefinitionBuilder = nullptr;
  decltype(&TF_OpDefinitionBuilderAddAttr) OpDefinitionBuilderAddAttr = nullptr;
  decltype(&TF_OpDefinitionBuilderAddInput) OpDefinitionBuilderAddInput = nullptr;
  decltype(&TF_OpDefinitionBuilderAddOutput) OpDefinitionBuilderAddOutput = nullptr;
  decltype(&TF_OpDefinitionBuilderSetIsStateful) OpDefinitionBuilderSetIsStateful = nullptr;
  decltype(&TF_OpDefinitionBuilderSetShapeInferenceFunction)
      OpDefinitionBuilderSetShapeInferenceFunction = nullptr;
  decltype(&TF_RegisterOpDefinition) RegisterOpDefinition = nullptr;
  decltype(&TF_NewShapeHandle) NewShapeHandle = nullptr;
  decltype(&TF_DeleteShapeHandle) DeleteShapeHandle = nullptr;
  decltype(&TF_ShapeInferenceContextNumInputs) ShapeInferenceContextNumInputs = nullptr;
  decltype(&TF_ShapeInferenceContextGetInput) ShapeInferenceContextGetInput = nullptr;
  decltype(&TF_ShapeInferenceContextSetOutput) ShapeInferenceContextSetOutput = nullptr;
  decltype(&TF_ShapeInferenceContextRankKnown) ShapeInferenceContextRankKnown = nullptr;
  decltype(&TF_ShapeInferenceContextScalar) ShapeInferenceContextScalar = nullptr;
  decltype(&TF_ShapeInferenceContextVectorFromSize) ShapeInferenceContextVectorFromSize = nullptr;
  decltype(&TF_ShapeInferenceContextSubshape) ShapeInferenceContextSubshape = nullptr;
  decltype(&TF_ShapeInferenceContextConcatenateShapes) ShapeInferenceContextConcatenateShapes =
      nullptr;
  decltype(&TF_NewAsyncKernelBuilder) NewAsyncKernelBuilder = nullptr;
  decltype(&TF_KernelBuilder_HostMemory) KernelBuilder_HostMemory = nullptr;
  decltype(&TF_RegisterKernelBuilder) RegisterKernelBuilder = nullptr;
  decltype(&TF_RunAsyncOpKernelDoneCallback) RunAsyncOpKernelDoneCallback = nullptr;
  decltype(&TF_OpKernelConstruction_Failure) OpKernelConstruction_Failure = nullptr;
  decltype(&TF_OpKernelConstruction_GetAttrInt32) OpKernelConstruction_GetAttrInt32 = nullptr;
  decltype(&TF_OpKernelConstruction_GetAttrFloat) OpKernelConstruction_GetAttrFloat = nullptr;
  decltype(&TF_OpKernelConstruction_GetAttrSize) OpKernelConstruction_GetAttrSize = nullptr;
  decltype(&TF_OpKernelConstruction_GetAttrString) OpKernelConstruction_GetAttrString = nullptr;
  decltype(&TF_OpKernelContext_Failure) OpKernelContext_Failure = nullptr;
  decltype(&TF_NumInputs) NumInputs = nullptr;
  decltype(&TF_GetInput) GetInput = nullptr;
  decltype(&TF_AllocateOutput) AllocateOutput = nullptr;
  decltype(&TF_ForwardInputOrAllocateOutput) ForwardInputOrAllocateOutput = nullptr;
};

// Finds the functions in the libtensorflow_framework.so.2 that this process has loaded. Returns the
// missing ones in one line, or "". To be called once, before any other use of TensorFlow.
std::string FindTensorFlow();

// The functions that FindTensorFlow has found.
const TensorFlow& Tf();

// An owned TF_Status.
class Status {
 public:
  Status() : status_(Tf().NewStatus()) {}
  Status(int code, const std::string& message) : Status() {
    Tf().SetStatus(status_.get(), code, message.c_str());
  }

  TF_Status* get() const { return status_.get(); }
  bool ok() const { return Tf().GetCode(get()) == kTfOk; }
  std::string message() const { return Tf().Message(get()); }

 private:
  struct Delete {
    void operator()(TF_Status* status) const { Tf().DeleteStatus(status); }
  };
  std::unique_ptr<TF_Status, Delete> status_;
};

// An owned TF_Tensor, which holds a reference to memory that TensorFlow counts.
struct DeleteTensor {
  void operator()(TF_Tensor* tensor) const { Tf().DeleteTensor(tensor); }
};
using Tensor = std::unique_ptr<TF_Tensor, DeleteTensor>;

}  // namespace hvd::frameworks::tensorflow

#endif  // FRAMEWORKS_TENSORFLOW_TENSORFLOW_LIBRARY_H_
