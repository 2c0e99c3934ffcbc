// The exported functions of libhvd_jax.so: those that Python calls, and the handlers for XLA.
#include <string>

#include "frameworks/jax/collective_handler.h"
#include "frameworks/jax/collective_run.h"
#include "frameworks/runtime_library.h"

extern "C" {

// Connects the collectives with the libhvd.so at `path`, which this process has loaded. Returns an
// error, or "". Valid until this thread's next call.
HVD_EXPORT const char* hvd_jax_use(const char* path) {
  static thread_local std::string error;
  error = hvd::frameworks::FindRuntimeLibrary(path);
  return error.c_str();
}

// See TakeFailure. The result is valid until this thread's next call.
HVD_EXPORT const char* hvd_jax_take_failure() {
  static thread_local std::string text;
  text = hvd::frameworks::jax::TakeFailure();
  return text.c_str();
}

HVD_EXPORT hvd::frameworks::jax::XlaError* hvd_jax_collective(
    hvd::frameworks::jax::XlaCallFrame* frame) {
  return hvd::frameworks::jax::HandleCollective(frame);
}

HVD_EXPORT hvd::frameworks::jax::XlaError* hvd_jax_collective_on_cuda(
    hvd::frameworks::jax::XlaCallFrame* frame) {
  return hvd::frameworks::jax::HandleCollectiveOnCuda(frame);
}

}  // extern "C"
