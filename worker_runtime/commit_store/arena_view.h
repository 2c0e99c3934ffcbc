// The view of another process's commit arena: finds and reads its newest commit while that process
// goes on making others.
#ifndef WORKER_RUNTIME_COMMIT_STORE_ARENA_VIEW_H_
#define WORKER_RUNTIME_COMMIT_STORE_ARENA_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/fd.h"

namespace hvd::worker_runtime::commit_store {

// A view holds back the slot that it reads, so that its owner takes another for the next commit.
// That is a request: whoever uses what was read must compare its checksum. There may be one view
// that reads at a time. Not thread-safe.
class ArenaView {
 public:
  struct Commit {
    uint64_t number = 0;
    uint64_t sequence = 0;
    uint32_t checksum = 0;
    size_t size = 0;
    int slot = 0;
  };

  // `memory` is a memfd with the arena of `job`, or to become one.
  ArenaView(Fd memory, absl::string_view job);
  ~ArenaView();
  ArenaView(const ArenaView&) = delete;
  ArenaView& operator=(const ArenaView&) = delete;

  // The newest sealed commit; nullopt: there is none. Its contents are not looked at.
  std::optional<Commit> Newest();

  // The contents, which stay mapped until the next call, or Release.
  // Errors:
  //   - Aborted: the commit has been replaced.
  //   - ResourceExhausted: it can't be mapped.
  absl::StatusOr<absl::string_view> Read(const Commit& commit);
  void Release();

 private:
  bool MapHeader();

  const Fd memory_;
  const uint32_t job_;
  struct ArenaHeader* header_ = nullptr;
  void* contents_ = nullptr;
  size_t mapped_ = 0;
};

}  // namespace hvd::worker_runtime::commit_store

#endif  // WORKER_RUNTIME_COMMIT_STORE_ARENA_VIEW_H_
