// The commit arena of a worker: shared memory that its agent owns, so that commits survive the
// worker's process and are available to the process that replaces it.
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
#include "absl/types/span.h"
#include "base/fd.h"
#include "worker_runtime/commit_store/arena_layout.h"
#include "worker_runtime/commit_store/arena_view.h"
#include "worker_runtime/commit_store/part_copies.h"
#include "worker_runtime/commit_store/thread_team.h"

namespace hvd::worker_runtime::commit_store {

// A commit is written (Begin, Append, ..., Seal) without touching the previous one, which stays
// valid if this process dies at any point. Memory that was returned stays mapped for the life of
// the process, but a later Begin may overwrite it. Thread-safe. One process at a time may have an
// arena open.
class CommitArena {
 public:
  static constexpr int kSlots = kArenaSlots;
  static constexpr size_t kAlignment = kPartAlignment;

  // `memory` is a memfd, empty or with the arena of an earlier process of the job. Discards
  // contents of another job or version.
  // Errors:
  //   - FailedPrecondition: another process has the arena open.
  //   - ResourceExhausted, or the code of errno: there is not enough memory.
  static absl::StatusOr<std::unique_ptr<CommitArena>> Open(Fd memory, absl::string_view job);
  ~CommitArena();

  // Reserves memory for a commit of `bytes` and returns its address. Never overwrites the newest
  // sealed commit, nor the commit that `keep` (may be nullptr) points into. Drops a commit that was
  // begun and not sealed.
  // Errors:
  //   - ResourceExhausted: there is not enough memory; the newest commit is unaffected.
  absl::StatusOr<const char*> Begin(size_t bytes, const void* keep = nullptr);

  // Copies a part into the commit, at the next multiple of kAlignment.
  // Errors:
  //   - FailedPrecondition: no commit was begun.
  //   - InvalidArgument: the parts exceed the size given to Begin. The commit is dropped.
  absl::Status Append(absl::string_view part);
  // Appends several parts, on at most `threads` threads of the team. Errors: as above; none without
  // parts.
  absl::Status AppendAll(absl::Span<const absl::string_view> parts, ThreadTeam& team, int threads);

  // Called in place of Begin: the parts appended later are not written but compared with the newest
  // commit, by length and checksum.
  // Errors:
  //   - NotFound: there is no commit.
  absl::Status BeginComparison();
  // Returns whether the parts were equal to the commit; false if no comparison was begun.
  bool EndComparison();

  // Completes the commit, which becomes the newest one.
  // Errors:
  //   - FailedPrecondition: no commit was begun.
  absl::Status Seal(uint64_t number);

  // The number of the newest commit, whose contents are not checked; 0: there is none.
  uint64_t newest_number();
  // The checksum of the parts appended since Begin; 0: none.
  uint32_t pending_checksum();

  // A part of the commit that was begun: bytes that were appended as one part, or as parts without
  // a gap between them.
  struct Piece {
    size_t offset = 0, size = 0;
  };
  // Returns the checksums of pieces, from those of the copies: nothing is read. REQUIRES: the
  // pieces are in order.
  // Errors:
  //   - FailedPrecondition: no commit was begun.
  //   - InvalidArgument: a piece does not consist of whole parts.
  absl::StatusOr<std::vector<uint32_t>> ChecksumsOf(absl::Span<const Piece> pieces);

  // Copies the newest commit of another arena, which becomes the newest one here.
  // Errors:
  //   - NotFound: the other arena has no newer commit.
  //   - Aborted: the owner of the other arena has replaced the commit meanwhile.
  //   - ResourceExhausted: there is not enough memory.
  absl::Status TakeOver(ArenaView& other);

  // Drops all commits and frees their memory.
  void Clear();

  struct Commit {
    uint64_t number = 0;
    absl::string_view contents;
  };
  // Returns the newest commit with a valid checksum; nullopt: there is none. Computes the checksum,
  // which takes time.
  std::optional<Commit> Newest();

 private:
  struct Mapping {
    char* memory = nullptr;
    size_t bytes = 0;
    bool taken = false;  // whether all of its pages are allocated
  };
  struct Pending {
    int slot = 0;
    size_t capacity = 0;
    size_t size = 0;
    uint32_t checksum = 0;
    bool compares = false;
    std::vector<CopiedStretch> stretches;
  };

  explicit CommitArena(Fd memory) : memory_(std::move(memory)) {}
  absl::Status MapHeader(absl::string_view job);
  // Maps the first `bytes` of a slot. For writing, also allocates their pages, so that a later
  // write can't fail.
  absl::StatusOr<char*> Map(int slot, size_t bytes, bool for_writing)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int ChooseSlot(const void* keep) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsIn(int slot, const void* place) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int NewestSealed() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The start of the pending commit's memory; nullptr: it is a comparison.
  char* PendingMemory() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Fd memory_;
  absl::Mutex mutex_;
  ArenaHeader* header_ = nullptr;
  // The mappings of each slot, the current one last. Earlier ones stay, since they may be in use.
  std::vector<Mapping> mappings_[kSlots] ABSL_GUARDED_BY(mutex_);
  std::optional<Pending> pending_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hvd::worker_runtime::commit_store

#endif  // WORKER_RUNTIME_COMMIT_STORE_COMMIT_ARENA_H_
