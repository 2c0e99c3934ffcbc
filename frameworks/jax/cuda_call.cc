#include "frameworks/jax/cuda_call.h"

#include <memory>
#include <string>
#include <vector>

#include "frameworks/jax/collective_call.h"
#include "frameworks/jax/collective_run.h"
#include "frameworks/runtime_library.h"
#include "worker_runtime/api/hvd_c_api.h"

namespace hvd::frameworks::jax {
namespace {

XlaError* FindStream(const XlaCallFrame& frame, void** stream) {
  XlaStreamGetArgs args{sizeof(args), nullptr, frame.context, nullptr};
  XlaError* const error = frame.api->stream_get(&args);
  *stream = args.stream;
  return error;
}

// In XLA's buffers. The wait for the other ranks is this thread's: an error has to be XLA's before
// the program goes on, and a stream can't carry one.
XlaError* RunOnDevice(const XlaApi& api, CollectiveCall& call, int32_t device, void* ready) {
  call.UseDevice(device, ready);
  return RunCollective(
      api, call,
      [&](int index, const hvd_tensor& result) {
        std::string wrong = call.CheckShape(index, result);
        const bool is_there =
            call.result_bytes(index) == 0 || result.data == call.result_buffer(index);
        if (wrong.empty() && !is_there) wrong = "the result is not in XLA's memory";
        return wrong;
      },
      [] { return nullptr; });
}

XlaError* CopyToHost(const XlaApi& api, CollectiveCall& call, void* stream,
                     std::vector<std::unique_ptr<char[]>>& kept) {
  std::vector<hvd_bus_copy> copies;
  for (int i = 0; i < static_cast<int>(call.requests().size()); ++i) {
    const size_t bytes = call.input_bytes(i);
    kept.emplace_back(new char[bytes]);
    copies.push_back({kept.back().get(), call.input_buffer(i), static_cast<int64_t>(bytes)});
    call.UseHost(i, kept.back().get());
  }
  const int32_t status =
      Runtime()->stream_to_host(stream, copies.data(), static_cast<int32_t>(copies.size()));
  return status == HVD_OK ? nullptr : Failure(api, status);
}

XlaError* RunOnHost(const XlaApi& api, CollectiveCall& call, void* stream) {
  std::vector<std::unique_ptr<char[]>> kept;
  if (XlaError* const error = CopyToHost(api, call, stream, kept); error != nullptr) return error;
  std::vector<hvd_bus_copy> back;
  return RunCollective(
      api, call,
      [&](int index, const hvd_tensor& result) {
        const auto bytes = static_cast<int64_t>(call.result_bytes(index));
        back.push_back({call.result_buffer(index), result.data, bytes});
        return call.CheckShape(index, result);
      },
      [&]() -> XlaError* {
        const int32_t status =
            Runtime()->stream_to_device(stream, back.data(), static_cast<int32_t>(back.size()));
        return status == HVD_OK ? nullptr : Failure(api, status);
      });
}

}  // namespace

XlaError* ExecuteOnCuda(const XlaCallFrame& frame) {
  const XlaApi& api = *frame.api;
  CollectiveCall call;
  const std::string wrong = call.Read(frame, CollectiveCall::Memory::kDevice);
  if (!wrong.empty()) return Refusal(api, wrong);
  void* stream = nullptr;
  if (XlaError* const error = FindStream(frame, &stream); error != nullptr) return error;
  if (!call.IsForDevices()) return RunOnHost(api, call, stream);
  int32_t device = 0;
  void* ready = nullptr;
  const int32_t status = Runtime()->stream_mark(stream, &device, &ready);
  if (status != HVD_OK) return Failure(api, status);
  XlaError* const error = Runtime()->takes_device(device) != 0
                              ? RunOnDevice(api, call, device, ready)
                              : RunOnHost(api, call, stream);
  Runtime()->stream_forget(stream, ready);
  return error;
}

}  // namespace hvd::frameworks::jax
