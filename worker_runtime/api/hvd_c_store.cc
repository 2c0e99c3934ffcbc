// The functions of the C ABI for commits, and for the state that newcomers get.
#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/os/usable_cores.h"
#include "base/status_macros.h"
#include "worker_runtime/api/guarded.h"
#include "worker_runtime/api/hvd_c_api.h"
#include "worker_runtime/api/runtime.h"
#include "worker_runtime/commit_store/thread_team.h"

namespace runtime = hvd::worker_runtime;

namespace {

absl::Status NoStoreError() {
  return absl::UnimplementedError(
      "there is no commit store: this process has no agent, or its job is not elastic");
}

// Calls function(store).
template <typename Function>
int32_t WithStore(Function function) {
  return runtime::api::Guarded([&]() -> absl::Status {
    runtime::commit_store::CommitArena* const store = runtime::api::TheRuntime().store();
    if (store == nullptr) return NoStoreError();
    return function(*store);
  });
}

// Those that copy a worker's large memory. Never destroyed, as a forked child has none of them.
runtime::commit_store::ThreadTeam& Copiers() {
  static runtime::commit_store::ThreadTeam& copiers = *new runtime::commit_store::ThreadTeam();
  return copiers;
}

// This worker's share of the cores, up to as many as fill the bandwidth of a socket's memory.
int CopyingThreads() {
  constexpr int kMost = 8;
  static const int cores = hvd::os::UsableCores();
  const auto place = runtime::api::TheRuntime().place();
  return std::min(kMost,
                  hvd::os::ThreadsOfWorker(cores, place.has_value() ? place->local_size : 1));
}

// Appends the bytes of a broadcast.
void AppendTo(runtime::commit_store::CommitArena& store, const void* bytes, size_t count) {
  // Ignored here because the broadcast must go on for the other ranks. A failed Append abandons the
  // commit, so hvd_store_seal reports the error.
  store.Append(absl::string_view(static_cast<const char*>(bytes), count)).IgnoreError();
}

}  // namespace

int32_t hvd_store_begin(int64_t bytes, const void* keep, const void** memory) {
  return WithStore([&](runtime::commit_store::CommitArena& store) -> absl::Status {
    // As a size_t it would be enormous, and the error one about lack of memory.
    if (bytes < 0) return absl::InvalidArgumentError("the size of a commit is negative");
    ASSIGN_OR_RETURN(*memory, store.Begin(static_cast<size_t>(bytes), keep));
    return absl::OkStatus();
  });
}

int32_t hvd_store_append(const void* const* parts, const int64_t* bytes, int32_t count) {
  return WithStore([&](runtime::commit_store::CommitArena& store) -> absl::Status {
    std::vector<absl::string_view> all;
    for (int32_t i = 0; i < count; ++i) {
      all.emplace_back(static_cast<const char*>(parts[i]), static_cast<size_t>(bytes[i]));
    }
    return store.AppendAll(all, Copiers(), CopyingThreads());
  });
}

void hvd_copy(void* to, const void* const* parts, const int64_t* bytes, int32_t count) {
  // Pieces of a size that several threads can share; each copies to where the one before ends.
  constexpr int64_t kPieceBytes = int64_t{512} << 10;
  struct Piece {
    char* to;
    const char* from;
    size_t bytes;
  };
  std::vector<Piece> pieces;
  char* end = static_cast<char*>(to);
  for (int32_t i = 0; i < count; ++i) {
    const char* const part = static_cast<const char*>(parts[i]);
    for (int64_t at = 0; at < bytes[i]; at += kPieceBytes) {
      const auto size = static_cast<size_t>(std::min(kPieceBytes, bytes[i] - at));
      pieces.push_back({end, part + at, size});
      end += size;
    }
  }
  Copiers().Run(CopyingThreads(), pieces.size(),
                [&](size_t i) { memcpy(pieces[i].to, pieces[i].from, pieces[i].bytes); });
}

int32_t hvd_store_checksums(int64_t base, const int64_t* offsets, const int64_t* bytes,
                            int32_t count, uint32_t* checksums) {
  return WithStore([&](runtime::commit_store::CommitArena& store) -> absl::Status {
    std::vector<runtime::commit_store::CommitArena::Piece> pieces;
    pieces.reserve(static_cast<size_t>(count));
    for (int32_t i = 0; i < count; ++i) {
      pieces.push_back({static_cast<size_t>(base + offsets[i]), static_cast<size_t>(bytes[i])});
    }
    ASSIGN_OR_RETURN(const std::vector<uint32_t> computed, store.ChecksumsOf(pieces));
    std::copy(computed.begin(), computed.end(), checksums);
    return absl::OkStatus();
  });
}

int32_t hvd_store_seal(int64_t number) {
  return WithStore([&](runtime::commit_store::CommitArena& store) {
    return store.Seal(static_cast<uint64_t>(number));
  });
}

int32_t hvd_store_compare(void) {
  return WithStore(
      [](runtime::commit_store::CommitArena& store) { return store.BeginComparison(); });
}

int32_t hvd_store_is_same(void) {
  runtime::commit_store::CommitArena* const store = runtime::api::TheRuntime().store();
  // Without a store nothing was compared. The answer "not the same" costs a copy; the other one
  // could cost the state.
  return store != nullptr && store->EndComparison() ? 1 : 0;
}

int32_t hvd_store_newest(const void** memory, int64_t* bytes, int64_t* number) {
  return WithStore([&](runtime::commit_store::CommitArena& store) -> absl::Status {
    const auto newest = store.Newest();
    if (!newest.has_value()) return absl::NotFoundError("there is no commit yet");
    *memory = newest->contents.data();
    *bytes = static_cast<int64_t>(newest->contents.size());
    *number = static_cast<int64_t>(newest->number);
    return absl::OkStatus();
  });
}

int32_t hvd_store_take_kept(void) {
  return runtime::api::Guarded([] { return runtime::api::TheRuntime().TakeKeptCommit(); });
}

int32_t hvd_broadcast_stretches(const char* name, void* const* stretches, const int64_t* bytes,
                                int32_t count, int32_t root_rank, int32_t process_set,
                                int32_t append, int64_t* handle) {
  return runtime::api::Guarded([&]() -> absl::Status {
    auto scattered = std::make_shared<runtime::engine::ScatteredTensor>();
    int64_t total = 0;
    for (int32_t i = 0; i < count; ++i) {
      scattered->stretches.push_back({stretches[i], static_cast<size_t>(bytes[i])});
      total += bytes[i];
    }
    // The communicators call it without a check.
    scattered->observe = [](const void*, size_t) {};
    if (append != 0) {
      runtime::commit_store::CommitArena* const store = runtime::api::TheRuntime().store();
      if (store == nullptr) return NoStoreError();
      scattered->observe = [store](const void* data, size_t size) { AppendTo(*store, data, size); };
    }
    runtime::engine::TensorRequest request;
    request.name = name;
    request.op = runtime::negotiation::OpKind::kBroadcast;
    request.type = hvd::collectives::DataType::kUint8;
    request.shape = {total};
    request.root_rank = root_rank;
    request.scattered = std::move(scattered);
    std::vector<runtime::engine::TensorRequest> group;
    group.push_back(std::move(request));
    ASSIGN_OR_RETURN(*handle, runtime::api::TheRuntime().Submit(std::move(group), process_set));
    return absl::OkStatus();
  });
}
