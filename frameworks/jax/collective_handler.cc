#include "frameworks/jax/collective_handler.h"

#include <exception>
#include <mutex>
#include <string>
#include <utility>

#include "frameworks/jax/collective_call.h"
#include "frameworks/jax/xla_ffi_abi.h"
#include "frameworks/runtime_library.h"
#include "worker_runtime/api/hvd_c_api.h"

namespace hvd::frameworks::jax {
namespace {

struct {
  std::mutex mutex;
  std::string text;
} first_failure;

void NoteFailure(const std::string& text) {
  const std::lock_guard<std::mutex> lock(first_failure.mutex);
  if (first_failure.text.empty()) first_failure.text = text;
}

XlaErrorCode CodeOf(int32_t status) {
  return status <= static_cast<int32_t>(XlaErrorCode::kUnauthenticated)
             ? static_cast<XlaErrorCode>(status)
             : XlaErrorCode::kUnknown;
}

XlaError* Error(const XlaApi& api, XlaErrorCode code, const std::string& text) {
  XlaErrorCreateArgs args{sizeof(args), nullptr, text.c_str(), code};
  return api.error_create(&args);
}

XlaError* Refusal(const XlaApi& api, const std::string& text) {
  return Error(api, XlaErrorCode::kInvalidArgument, ErrorText(HVD_INVALID_ARGUMENT, text));
}

XlaError* RefuseVersion(const XlaApi& api) {
  return Refusal(api, "this Horovod knows version " + std::to_string(kXlaFfiMajorVersion) +
                          " of XLA's FFI, this jaxlib has version " +
                          std::to_string(api.api_version.major_version));
}

// Answers with the caller's version, because the handler supports all minor versions of the major
// version: it uses only fields that all of them have.
XlaError* AnswerMetadata(const XlaApi& api, XlaMetadata& metadata) {
  if (api.api_version.major_version != kXlaFfiMajorVersion) return RefuseVersion(api);
  metadata.api_version.major_version = api.api_version.major_version;
  metadata.api_version.minor_version = api.api_version.minor_version;
  return nullptr;
}

std::string TakeResults(const RuntimeLibrary& runtime, int64_t handle, const CollectiveCall& call) {
  for (size_t i = 0; i < call.requests().size(); ++i) {
    hvd_tensor result{};
    const auto index = static_cast<int32_t>(i);
    if (runtime.result(handle, index, &result) != HVD_OK) return runtime.last_error();
    std::string wrong = call.Take(index, result);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

// Submits and waits on this thread, which does the engine's work meanwhile (`waits`). XLA orders
// the calls of a program by the byte that each passes to the next, so that all ranks block in the
// same call.
XlaError* Run(const XlaApi& api, const RuntimeLibrary& runtime, const CollectiveCall& call) {
  int64_t handle = 0;
  int32_t status =
      runtime.submit(call.requests().data(), static_cast<int32_t>(call.requests().size()),
                     call.process_set(), /*waits=*/1, &handle);
  if (status == HVD_OK) {
    do {
      status = runtime.wait(handle);
    } while (status == HVD_STILL_RUNNING);
  }
  XlaError* error = nullptr;
  if (status != HVD_OK) {
    const std::string text = ErrorText(status);
    // JAX may report this error minutes later, or as one of another program that needed the result.
    // Python asks for the first cause before that.
    if (!WorldGoesOn(status)) NoteFailure(text);
    error = Error(api, CodeOf(status), text);
  } else if (const std::string wrong = TakeResults(runtime, handle, call); !wrong.empty()) {
    error = Refusal(api, wrong);
  }
  // Last: the results are the runtime's memory until then.
  if (handle != 0) runtime.release(handle);
  return error;
}

XlaError* Execute(const XlaCallFrame& frame) {
  const XlaApi& api = *frame.api;
  if (api.api_version.major_version != kXlaFfiMajorVersion) return RefuseVersion(api);
  CollectiveCall call;
  const std::string wrong = call.Read(frame);
  return wrong.empty() ? Run(api, *Runtime(), call) : Refusal(api, wrong);
}

}  // namespace

XlaError* HandleCollective(XlaCallFrame* frame) {
  if (frame->extension_start != nullptr &&
      frame->extension_start->type == XlaExtension::kMetadata) {
    auto& extension = reinterpret_cast<XlaMetadataExtension&>(*frame->extension_start);
    return AnswerMetadata(*frame->api, *extension.metadata);
  }
  if (frame->stage != XlaStage::kExecute) return nullptr;
  // Exceptions must not cross the C interface. The likely one is std::bad_alloc.
  try {
    return Execute(*frame);
  } catch (const std::exception& error) {
    return Error(*frame->api, XlaErrorCode::kUnknown,
                 ErrorText(HVD_RESOURCE_EXHAUSTED, error.what()));
  }
}

std::string TakeFailure() {
  const std::lock_guard<std::mutex> lock(first_failure.mutex);
  return std::exchange(first_failure.text, "");
}

}  // namespace hvd::frameworks::jax
