// The entry points of libhvd_tensorflow.so: the registration when TensorFlow loads it, and the
// functions that Python calls.
#include <string>

#include "frameworks/runtime_library.h"
#include "frameworks/tensorflow/kernels.h"
#include "frameworks/tensorflow/operations.h"
#include "frameworks/tensorflow/tensorflow_library.h"
#include "frameworks/tensorflow/xla_call.h"

namespace hvd::frameworks::tensorflow {
namespace {

// Registers operations and kernels. It must run while TensorFlow loads the library: TensorFlow
// publishes only the operations that are registered during that.
std::string RegisterAll() {
  if (std::string error = FindTensorFlow(); !error.empty()) return error;
  if (std::string error = RegisterOperations(); !error.empty()) return error;
  return RegisterKernels();
}

const std::string& Problem() {
  static const auto* const problem = new std::string(RegisterAll());
  return *problem;
}

__attribute__((constructor)) void OnLoad() { Problem(); }

}  // namespace
}  // namespace hvd::frameworks::tensorflow

extern "C" {

// The error of the registration; "": all operations are registered.
HVD_EXPORT const char* hvd_tensorflow_problem() {
  return hvd::frameworks::tensorflow::Problem().c_str();
}

// Connects the operations with the libhvd.so at `path`, which this process has loaded. Returns an
// error, or "". The result is valid until this thread's next call.
HVD_EXPORT const char* hvd_tensorflow_use(const char* path) {
  static thread_local std::string error;
  error = hvd::frameworks::FindRuntimeLibrary(path);
  return error.c_str();
}

// Registers the custom call for programs that XLA compiles. Returns an error, or "".
HVD_EXPORT const char* hvd_tensorflow_use_xla() {
  static const auto* const error = new std::string(hvd::frameworks::tensorflow::RegisterXlaCall());
  return error->c_str();
}

// For tests: see LetKernelsWait.
HVD_EXPORT void hvd_tensorflow_wait() { hvd::frameworks::tensorflow::LetKernelsWait(); }

}  // extern "C"
