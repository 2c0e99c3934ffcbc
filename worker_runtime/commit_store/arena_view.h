// A read-only view of another process's commit arena: reads its newest commit while that process
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

// While it reads, a view marks the slot, so that the owner uses another one for the next commit.
// The mark is no lock: the owner may have chosen the slot just before. So the reader must compare
// the checksum of what it has read. One view at a time may read. Not thread-safe.
class ArenaView {
 public:
  struct Commit {
    uint64_t number = 0;
    uint64_t sequence = 0;
    uint32_t checksum = 0;
    size_t size = 0;
    int slot = 0;
  };

  // `memory` is a memfd that contains the arena of `job`, or will once its owner has opened it.
  ArenaView(Fd memory, absl::string_view job);
  ~ArenaView();
  ArenaView(const ArenaView&) = delete;
  ArenaView& operator=(const ArenaView&) = delete;

  // Returns the newest sealed commit; nullopt: there is none. Does not check its contents.
  std::optional<Commit> Newest();

  // Marks the commit's slot as being read and returns the contents, which stay mapped until the
  // next Read or Release.
  // Errors:
  //   - Aborted: the commit has been replaced.
  //   - The code of errno: the memory can't be mapped.
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
