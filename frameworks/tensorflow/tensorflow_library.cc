#include "frameworks/tensorflow/tensorflow_library.h"

#include <dlfcn.h>

namespace hvd::frameworks::tensorflow {
namespace {

constexpr char kLibrary[] = "libtensorflow_framework.so.2";

// Trivially destructible: TensorFlow's threads may read it until the process ends.
TensorFlow tf;

template <typename Function>
void Find(void* library, const char* name, Function* function, std::string* missing) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  // The first missing name is enough to tell which version this is.
  if (*function == nullptr && missing->empty()) *missing = name;
}

}  // namespace

const TensorFlow& Tf() { return tf; }

// RTLD_NOLOAD: the library must be the one that this process has loaded, and is never loaded anew.
std::string FindTensorFlow() {
  void* const library = dlopen(kLibrary, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return std::string(kLibrary) + " is not loaded";
  std::string missing;
  Find(library, "TF_NewStatus", &tf.NewStatus, &missing);
  Find(library, "TF_DeleteStatus", &tf.DeleteStatus, &missing);
  Find(library, "TF_SetStatus", &tf.SetStatus, &missing);
  Find(library, "TF_GetCode", &tf.GetCode, &missing);
  Find(library, "TF_Message", &tf.Message, &missing);
  Find(library, "TF_TensorType", &tf.TensorType, &missing);
  Find(library, "TF_NumDims", &tf.NumDims, &missing);
  Find(library, "TF_Dim", &tf.Dim, &missing);
  Find(library, "TF_TensorByteSize", &tf.TensorByteSize, &missing);
  Find(library, "TF_TensorData", &tf.TensorData, &missing);
  Find(library, "TF_DeleteTensor", &tf.DeleteTensor, &missing);
  Find(library, "TF_NewOpDefinitionBuilder", &tf.NewOpDefinitionBuilder, &missing);
  Find(library, "TF_OpDefinitionBuilderAddAttr", &tf.OpDefinitionBuilderAddAttr, &missing);
  Find(library, "TF_OpDefinitionBuilderAddInput", &tf.OpDefinitionBuilderAddInput, &missing);
  Find(library, "TF_OpDefinitionBuilderAddOutput", &tf.OpDefinitionBuilderAddOutput, &missing);
  Find(library, "TF_OpDefinitionBuilderSetIsStateful", &tf.OpDefinitionBuilderSetIsStateful,
       &missing);
  Find(library, "TF_OpDefinitionBuilderSetShapeInferenceFunction",
       &tf.OpDefinitionBuilderSetShapeInferenceFunction, &missing);
  Find(library, "TF_RegisterOpDefinition", &tf.RegisterOpDefinition, &missing);
  Find(library, "TF_NewShapeHandle", &tf.NewShapeHandle, &missing);
  Find(library, "TF_DeleteShapeHandle", &tf.DeleteShapeHandle, &missing);
  Find(library, "TF_ShapeInferenceContextNumInputs", &tf.ShapeInferenceContextNumInputs, &missing);
  Find(library, "TF_ShapeInferenceContextGetInput", &tf.ShapeInferenceContextGetInput, &missing);
  Find(library, "TF_ShapeInferenceContextSetOutput", &tf.ShapeInferenceContextSetOutput, &missing);
  Find(library, "TF_ShapeInferenceContextRankKnown", &tf.ShapeInferenceContextRankKnown, &missing);
  Find(library, "TF_ShapeInferenceContextScalar", &tf.ShapeInferenceContextScalar, &missing);
  Find(library, "TF_ShapeInferenceContextVectorFromSize", &tf.ShapeInferenceContextVectorFromSize,
       &missing);
  Find(library, "TF_ShapeInferenceContextSubshape", &tf.ShapeInferenceContextSubshape, &missing);
  Find(library, "TF_ShapeInferenceContextConcatenateShapes",
       &tf.ShapeInferenceContextConcatenateShapes, &missing);
  Find(library, "TF_NewAsyncKernelBuilder", &tf.NewAsyncKernelBuilder, &missing);
  Find(library, "TF_KernelBuilder_HostMemory", &tf.KernelBuilder_HostMemory, &missing);
  Find(library, "TF_RegisterKernelBuilder", &tf.RegisterKernelBuilder, &missing);
  Find(library, "TF_RunAsyncOpKernelDoneCallback", &tf.RunAsyncOpKernelDoneCallback, &missing);
  Find(library, "TF_OpKernelConstruction_Failure", &tf.OpKernelConstruction_Failure, &missing);
  Find(library, "TF_OpKernelConstruction_GetAttrInt32", &tf.OpKernelConstruction_GetAttrInt32,
       &missing);
  Find(library, "TF_OpKernelConstruction_GetAttrFloat", &tf.OpKernelConstruction_GetAttrFloat,
       &missing);
  Find(library, "TF_OpKernelConstruction_GetAttrSize", &tf.OpKernelConstruction_GetAttrSize,
       &missing);
  Find(library, "TF_OpKernelConstruction_GetAttrString", &tf.OpKernelConstruction_GetAttrString,
       &missing);
  Find(library, "TF_OpKernelContext_Failure", &tf.OpKernelContext_Failure, &missing);
  Find(library, "TF_NumInputs", &tf.NumInputs, &missing);
  Find(library, "TF_GetInput", &tf.GetInput, &missing);
  Find(library, "TF_AllocateOutput", &tf.AllocateOutput, &missing);
  Find(library, "TF_ForwardInputOrAllocateOutput", &tf.ForwardInputOrAllocateOutput, &missing);
  return missing.empty() ? "" : std::string(kLibrary) + " has no " + missing;
}

}  // namespace hvd::frameworks::tensorflow
