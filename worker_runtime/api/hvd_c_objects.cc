// The functions of the C ABI for objects.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "worker_runtime/api/guarded.h"
#include "worker_runtime/api/hvd_c_api.h"
#include "worker_runtime/api/object_seals.h"

static_assert(HVD_SEAL_BYTES == hvd::worker_runtime::api::kSealBytes,
              "the C ABI and its library differ");

namespace {

absl::string_view View(const void* bytes, int64_t count) {
  return {static_cast<const char*>(bytes), static_cast<size_t>(std::max<int64_t>(count, 0))};
}

}  // namespace

int32_t hvd_seal(const char* name, int32_t process_set, void* object, int64_t bytes) {
  return hvd::worker_runtime::api::WithWorld([&](hvd::worker_runtime::api::ActiveWorld& active) {
    const absl::string_view content = View(object, bytes);
    const std::string seal =
        active.seals().Seal({process_set, name}, active.world().rank(), content);
    // The caller's memory has HVD_SEAL_BYTES more than `bytes`, so that object and seal are sent as
    // one.
    std::copy(seal.begin(), seal.end(), static_cast<char*>(object) + content.size());
    return absl::OkStatus();
  });
}

int32_t hvd_open(const char* name, int32_t process_set, const int32_t* senders,
                 const void* const* objects, const int64_t* bytes, int32_t count) {
  return hvd::worker_runtime::api::WithWorld([&](hvd::worker_runtime::api::ActiveWorld& active) {
    std::vector<hvd::worker_runtime::api::ObjectSeals::Sealed> sealed;
    for (int32_t i = 0; i < count; ++i) sealed.push_back({senders[i], View(objects[i], bytes[i])});
    return active.OpenSealed({process_set, name}, sealed);
  });
}
