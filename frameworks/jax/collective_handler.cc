#include "frameworks/jax/collective_handler.h"

#include <exception>
#include <string>

#include "frameworks/jax/collective_call.h"
#include "frameworks/jax/collective_run.h"
#include "frameworks/jax/cuda_call.h"
#include "frameworks/runtime_library.h"

namespace hvd::frameworks::jax {
namespace {

XlaError* RefuseVersion(const XlaApi& api) {
  return Refusal(api, "this Horovod knows version " + std::to_string(kXlaFfiMajorVersion) +
                          " of XLA's FFI, this jaxlib has version " +
                          std::to_string(api.api_version.major_version));
}

// Answers with the caller's version, because the handlers support all minor versions of the major
// version: they use only fields that all of them have. They claim no traits, so XLA does not record
// them in command buffers: a replayed one can't agree with the other ranks.
XlaError* AnswerMetadata(const XlaApi& api, XlaMetadata& metadata) {
  if (api.api_version.major_version != kXlaFfiMajorVersion) return RefuseVersion(api);
  metadata.api_version.major_version = api.api_version.major_version;
  metadata.api_version.minor_version = api.api_version.minor_version;
  return nullptr;
}

XlaError* ExecuteOnHost(const XlaCallFrame& frame) {
  CollectiveCall call;
  const std::string wrong = call.Read(frame, CollectiveCall::Memory::kHost);
  if (!wrong.empty()) return Refusal(*frame.api, wrong);
  return RunCollective(
      *frame.api, call,
      [&](int index, const hvd_tensor& result) { return call.Take(index, result); },
      [] { return nullptr; });
}

XlaError* Handle(XlaCallFrame& frame, XlaError* (*execute)(const XlaCallFrame&)) {
  if (frame.extension_start != nullptr && frame.extension_start->type == XlaExtension::kMetadata) {
    auto& extension = reinterpret_cast<XlaMetadataExtension&>(*frame.extension_start);
    return AnswerMetadata(*frame.api, *extension.metadata);
  }
  if (frame.stage != XlaStage::kExecute) return nullptr;
  if (frame.api->api_version.major_version != kXlaFfiMajorVersion) return RefuseVersion(*frame.api);
  // Exceptions must not cross the C interface. The likely one is std::bad_alloc.
  try {
    return execute(frame);
  } catch (const std::exception& error) {
    const std::string text = ErrorText(HVD_RESOURCE_EXHAUSTED, error.what());
    XlaErrorCreateArgs args{sizeof(args), nullptr, text.c_str(), XlaErrorCode::kUnknown};
    return frame.api->error_create(&args);
  }
}

}  // namespace

XlaError* HandleCollective(XlaCallFrame* frame) { return Handle(*frame, ExecuteOnHost); }

XlaError* HandleCollectiveOnCuda(XlaCallFrame* frame) { return Handle(*frame, ExecuteOnCuda); }

}  // namespace hvd::frameworks::jax
