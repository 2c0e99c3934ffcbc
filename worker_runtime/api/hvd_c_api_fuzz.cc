// Fuzz target: arguments of the C API, from programs in any language. A world of one rank.
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/fuzzing.h"
#include "worker_runtime/api/hvd_c_api.h"

namespace hvd::worker_runtime::api {
namespace {

constexpr int64_t kMostBytes = 1 << 12;  // of a tensor that has memory
constexpr int kElementBytes[] = {1, 1, 2, 4, 8, 2, 2, 4, 8, 1};

// A request, and what it points to. The memory has exactly the size that the request says.
class Tensor {
 public:
  explicit Tensor(InputParts& parts) : name_(parts.Take(parts.Byte() % 16)) {
    request_.name = name_.c_str();
    request_.op = parts.Byte() % 10 - 1;
    request_.dtype = parts.Byte() % 12 - 1;
    request_.reduction = parts.Byte() % 8 - 1;
    request_.ndim = parts.Byte() % 6 - 1;
    for (int i = 0; i < request_.ndim; ++i) shape_.push_back(AnyNumber(parts));
    request_.shape = shape_.data();
    request_.prescale = parts.Byte() % 4;
    request_.postscale = parts.Byte() % 4;
    request_.root_rank = parts.Byte() % 4 - 1;
    for (int i = parts.Byte() % 3; i > 0; --i) {
      splits_.push_back(static_cast<int32_t>(AnyNumber(parts)));
    }
    request_.splits = splits_.data();
    request_.splits_count = static_cast<int32_t>(splits_.size());
    request_.device = parts.Byte() % 8 == 0 ? 0 : HVD_HOST;
    const uint8_t memory = parts.Byte();
    const size_t bytes = Bytes();
    input_.resize(bytes);
    output_.resize(bytes);
    request_.input = memory % 8 == 1 ? nullptr : input_.data();
    request_.output = memory % 2 == 0 ? nullptr : output_.data();
    if (memory & 16) request_.meaning = name_.c_str();
  }

  const hvd_request& request() const { return request_; }
  // Whether the memory has the size that the shape says.
  bool has_memory() const { return is_small_ && request_.device == HVD_HOST; }

 private:
  static int64_t AnyNumber(InputParts& parts) {
    const uint8_t small = parts.Byte();
    return small < 250 ? small % 9 : static_cast<int64_t>(parts.Number(8));
  }

  size_t Bytes() {
    if (request_.dtype < 0 || request_.dtype > HVD_BOOL) return 0;
    int64_t bytes = kElementBytes[request_.dtype];
    for (const int64_t dim : shape_) {
      if (dim < 0 || dim > kMostBytes) return is_small_ = false, 0;
      bytes *= dim;
      if (bytes > kMostBytes) return is_small_ = false, 0;
    }
    return static_cast<size_t>(bytes);
  }

  const std::string name_;
  std::vector<int64_t> shape_;
  std::vector<int32_t> splits_;
  std::vector<char> input_, output_;
  bool is_small_ = true;
  hvd_request request_ = {};
};

// A mistake must be an error with a text; else the operation completes, and has a result.
void Finish(int32_t submitted, int64_t handle, size_t count) {
  if (submitted != HVD_OK) return Require(*hvd_last_error() != 0, "an error has a text");
  int32_t code = HVD_STILL_RUNNING;
  while (code == HVD_STILL_RUNNING) code = hvd_wait(handle, 60);
  Require(code == HVD_OK || code == HVD_INVALID_ARGUMENT || code == HVD_UNIMPLEMENTED,
          "one rank agrees with itself");
  if (code != HVD_OK) Require(*hvd_last_error() != 0, "an error has a text");
  for (size_t i = 0; code == HVD_OK && i < count; ++i) {
    hvd_tensor result = {};
    Require(hvd_result(handle, static_cast<int32_t>(i), &result) == HVD_OK, "there is a result");
  }
  hvd_tensor none = {};
  Require(hvd_result(handle, static_cast<int32_t>(count), &none) == HVD_NOT_FOUND, "no more");
  Require(hvd_release(handle) == HVD_OK, "the handle is known");
}

void Check(InputParts& parts) {
  const uint8_t count = parts.Byte() % 4;
  const int32_t process_set = parts.Byte() % 16 == 0 ? 7 : 0;
  std::vector<std::unique_ptr<Tensor>> tensors;
  std::vector<hvd_request> requests;
  bool has_memory = true;
  for (int i = 0; i < count; ++i) {
    tensors.push_back(std::make_unique<Tensor>(parts));
    requests.push_back(tensors.back()->request());
    has_memory = has_memory && tensors.back()->has_memory();
  }
  hvd_prepared* prepared = nullptr;
  const int32_t made = hvd_prepare(requests.data(), count, &prepared);
  if (made != HVD_OK) Require(*hvd_last_error() != 0, "an error has a text");
  hvd_forget(prepared);
  // Of what is larger only the checks can be tried.
  if (!has_memory && made == HVD_OK) return;
  int64_t handle = 0;
  const int32_t submitted = hvd_submit(requests.data(), count, process_set, 1, &handle);
  Finish(submitted, handle, count);
}

}  // namespace
}  // namespace hvd::worker_runtime::api

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const bool is_initialized = hvd_init() == HVD_OK;
  hvd::Require(is_initialized, "a process can be alone");
  hvd::InputParts parts(data, size);
  hvd::worker_runtime::api::Check(parts);
  return 0;
}
