// The part of the C ABI that is about commits.
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "worker_runtime/api/guarded.h"
#include "worker_runtime/api/hvd_c_api.h"

namespace {

// Calls function(store).
template <typename Function>
int32_t WithStore(Function function) {
  return hvd::Guarded([&]() -> absl::Status {
    hvd::CommitArena* const store = hvd::TheRuntime().store();
    if (store == nullptr) return absl::UnimplementedError("commits end with this process");
    return function(*store);
  });
}

}  // namespace

int32_t hvd_store_begin(int64_t bytes, const void* keep, const void** memory) {
  return WithStore([&](hvd::CommitArena& store) -> absl::Status {
    if (bytes < 0) return absl::InvalidArgumentError("a commit has no negative size");
    ASSIGN_OR_RETURN(*memory, store.Begin(static_cast<size_t>(bytes), keep));
    return absl::OkStatus();
  });
}

int32_t hvd_store_append(const void* const* parts, const int64_t* bytes, int32_t count) {
  return WithStore([&](hvd::CommitArena& store) -> absl::Status {
    for (int32_t i = 0; i < count; ++i) {
      RETURN_IF_ERROR(store.Append(
          absl::string_view(static_cast<const char*>(parts[i]), static_cast<size_t>(bytes[i]))));
    }
    return absl::OkStatus();
  });
}

int32_t hvd_store_seal(int64_t number) {
  return WithStore(
      [&](hvd::CommitArena& store) { return store.Seal(static_cast<uint64_t>(number)); });
}

int32_t hvd_store_newest(const void** memory, int64_t* bytes, int64_t* number) {
  return WithStore([&](hvd::CommitArena& store) -> absl::Status {
    const auto newest = store.Newest();
    if (!newest.has_value()) return absl::NotFoundError("there is no commit yet");
    *memory = newest->contents.data();
    *bytes = static_cast<int64_t>(newest->contents.size());
    *number = static_cast<int64_t>(newest->number);
    return absl::OkStatus();
  });
}
