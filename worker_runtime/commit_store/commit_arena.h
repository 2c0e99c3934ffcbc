// The commit arena of a worker: memory owned by its agent, so that commits outlive the worker and
// pass to the one that takes its place.
#ifndef WORKER_RUNTIME_COMMIT_STORE_COMMIT_ARENA_H_
#define WORKER_RUNTIME_COMMIT_STORE_COMMIT_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "base/fd.h"
#include "worker_runtime/commit_store/arena_layout.h"
#include "worker_runtime/commit_store/arena_view.h"

namespace hvd::worker_runtime::commit_store {

// Writes a commit (Begin, Append, ..., Seal) without touching the one before, which stays whole
// whenever this process dies. Memory that was handed out stays mapped for this process's life, but
// a later Begin writes to it again. Thread-safe; one process at a time.
class CommitArena {
 public:
  static constexpr int kSlots = kArenaSlots;
  static constexpr size_t kAlignment = 64;

  // `memory` is a memfd, empty or with the arena of an earlier process of the job. Contents of
  // another job or version are discarded.
  // Errors:
  //   - FailedPrecondition: another process uses it.
  //   - ResourceExhausted, other codes of errno: no memory.
  static absl::StatusOr<std::unique_ptr<CommitArena>> Open(Fd memory, absl::string_view job);
  ~CommitArena();

  // Makes room for a commit of `bytes` and returns its address; neither in the newest sealed commit
  // nor where `keep` points to (may be nullptr). An earlier commit that was begun and not sealed is
  // dropped.
  // Errors:
  //   - ResourceExhausted: there is not enough memory; the newest commit stays.
  absl::StatusOr<const char*> Begin(size_t bytes, const void* keep = nullptr);

  // Adds a part to the commit, at the next multiple of kAlignment.
  // Errors:
  //   - FailedPrecondition: no commit was begun.
  //   - InvalidArgument: the commit exceeds the size of Begin; it is dropped.
  absl::Status Append(absl::string_view part);

  // Instead of Begin: later parts are not written, but compared with the newest commit, by length
  // and checksum.
  // Errors:
  //   - NotFound: there is none.
  absl::Status BeginComparison();
  // Whether all was the same; false if no comparison was begun.
  bool EndComparison();

  // Makes the commit, as it is now, the newest one.
  // Errors:
  //   - FailedPrecondition: no commit was begun.
  absl::Status Seal(uint64_t number);

  // Of the newest commit, whatever its contents are by now; 0: there is none.
  uint64_t newest_number();
  // The checksum of what was appended since Begin; 0: nothing was.
  uint32_t pending_checksum();

  // Makes the newest commit of another arena the newest one here.
  // Errors:
  //   - NotFound: it has none that is newer.
  //   - Aborted: its owner has replaced it meanwhile.
  //   - ResourceExhausted: there is not enough memory.
  absl::Status TakeOver(ArenaView& other);

  // Drops all commits, and gives their memory back.
  void Clear();

  struct Commit {
    uint64_t number = 0;
    absl::string_view contents;
  };
  // The newest commit whose checksum is right, which takes time to compute; nullopt: there is none.
  std::optional<Commit> Newest();

 private:
  struct Mapping {
    char* memory = nullptr;
    size_t bytes = 0;
    bool taken = false;  // all of its memory is allocated
  };
  struct Pending {
    int slot = 0;
    size_t capacity = 0;
    size_t size = 0;
    uint32_t checksum = 0;
    bool compares = false;
  };

  explicit CommitArena(Fd memory) : memory_(std::move(memory)) {}
  absl::Status MapHeader(absl::string_view job);
  // The first `bytes` of a slot. For writing they are allocated now, so that a later write can't
  // fail.
  absl::StatusOr<char*> Map(int slot, size_t bytes, bool for_writing)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int ChooseSlot(const void* keep) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsIn(int slot, const void* place) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int NewestSealed() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Adds to the pending commit, which has room for it.
  void Add(absl::string_view part) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Fd memory_;
  absl::Mutex mutex_;
  ArenaHeader* header_ = nullptr;
  // By slot, the current one last.
  std::vector<Mapping> mappings_[kSlots] ABSL_GUARDED_BY(mutex_);
  std::optional<Pending> pending_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hvd::worker_runtime::commit_store

#endif  // WORKER_RUNTIME_COMMIT_STORE_COMMIT_ARENA_H_
