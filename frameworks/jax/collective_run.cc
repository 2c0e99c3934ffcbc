#include "frameworks/jax/collective_run.h"

#include <mutex>
#include <utility>

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

XlaError* TakeResults(const XlaApi& api, int64_t handle, size_t count,
                      const std::function<std::string(int, const hvd_tensor&)>& take) {
  for (size_t i = 0; i < count; ++i) {
    hvd_tensor result{};
    const auto index = static_cast<int32_t>(i);
    const int32_t status = Runtime()->result(handle, index, &result);
    if (status != HVD_OK) return Failure(api, status);
    const std::string wrong = take(index, result);
    if (!wrong.empty()) return Refusal(api, wrong);
  }
  return nullptr;
}

}  // namespace

XlaError* Failure(const XlaApi& api, int32_t status) {
  const std::string text = ErrorText(status);
  // JAX may report this error minutes later, or as one of another program that needed the result.
  // Python asks for the first cause before that.
  if (!WorldGoesOn(status)) NoteFailure(text);
  return Error(api, CodeOf(status), text);
}

XlaError* Refusal(const XlaApi& api, const std::string& text) {
  return Error(api, XlaErrorCode::kInvalidArgument, ErrorText(HVD_INVALID_ARGUMENT, text));
}

XlaError* RunCollective(const XlaApi& api, const CollectiveCall& call,
                        const std::function<std::string(int, const hvd_tensor&)>& take,
                        const std::function<XlaError*()>& finish) {
  const RuntimeLibrary& runtime = *Runtime();
  const size_t count = call.requests().size();
  int64_t handle = 0;
  int32_t status = runtime.submit(call.requests().data(), static_cast<int32_t>(count),
                                  call.process_set(), /*waits=*/1, &handle);
  if (status == HVD_OK) {
    do {
      status = runtime.wait(handle, /*seconds=*/1);
    } while (status == HVD_STILL_RUNNING);
  }
  XlaError* error = status == HVD_OK ? TakeResults(api, handle, count, take) : Failure(api, status);
  if (error == nullptr) error = finish();
  // Last: the results are the runtime's memory until then.
  if (handle != 0) runtime.release(handle);
  return error;
}

std::string TakeFailure() {
  const std::lock_guard<std::mutex> lock(first_failure.mutex);
  return std::exchange(first_failure.text, "");
}

}  // namespace hvd::frameworks::jax
