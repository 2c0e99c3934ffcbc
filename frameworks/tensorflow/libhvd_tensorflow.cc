// What libhvd_tensorflow.so does when TensorFlow loads it, and what Python calls of it.
#include <string>

#include "frameworks/runtime_library.h"
#include "frameworks/tensorflow/kernels.h"
#include "frameworks/tensorflow/operations.h"
#include "frameworks/tensorflow/tensorflow_library.h"
#include "frameworks/tensorflow/xla_call.h"

namespace hvd::frameworks::tensorflow {
namespace {

// TensorFlow makes the operations of a library known that are registered while it is loaded.
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

// Why the operations could not be registered; "" if they are.
HVD_EXPORT const char* hvd_tensorflow_problem() {
  return hvd::frameworks::tensorflow::Problem().c_str();
}

// Lets the operations run in the libhvd.so at `path`, which this process has loaded. Returns what is
// wrong, or "".
HVD_EXPORT const char* hvd_tensorflow_use(const char* path) {
  static thread_local std::string error;
  error = hvd::frameworks::FindRuntimeLibrary(path);
  return error.c_str();
}

// Makes the operations callable in programs that XLA has compiled. Returns what is missing, or "".
HVD_EXPORT const char* hvd_tensorflow_use_xla() {
  static const auto* const error =
      new std::string(hvd::frameworks::tensorflow::RegisterXlaCall());
  return error->c_str();
}

// For tests: see LetKernelsWait.
HVD_EXPORT void hvd_tensorflow_wait() { hvd::frameworks::tensorflow::LetKernelsWait(); }

}  // extern "C"
