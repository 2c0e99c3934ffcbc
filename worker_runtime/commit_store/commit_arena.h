// Where a worker keeps its commits: memory that its agent owns, so that it outlives the worker and
// goes to the one that takes its place.
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

namespace hvd::worker_runtime::commit_store {

// Takes a commit (Begin, Append, ..., Seal) without touching the one before, which stays whole
// whenever this process dies. Memory that was handed out stays mapped for this process's life, but
// a later Begin writes to it again. Thread-safe; one process at a time.
class CommitArena {
 public:
  // Two take turns; the third is used only while somebody reads the older of them.
  static constexpr int kSlots = 3;
  static constexpr size_t kAlignment = 64;

  // `memory` is a memfd, empty or with the arena of an earlier process of the job; what another job
  // or version has left there is forgotten.
  //   FailedPrecondition: another process uses it.   ResourceExhausted, other codes of errno: no
  //   memory to be had.
  static absl::StatusOr<std::unique_ptr<CommitArena>> Open(Fd memory, absl::string_view job);
  ~CommitArena();

  // Makes room for a commit of so many bytes and returns where it is going to be; neither in the
  // newest sealed one nor where `keep` points to (may be nullptr). A commit that was begun before
  // and not sealed is given up.   ResourceExhausted: there is not so much memory; the newest commit
  // stays.
  absl::StatusOr<const char*> Begin(size_t bytes, const void* keep = nullptr);

  // Adds a part to the commit, at the next multiple of kAlignment.
  //   FailedPrecondition: no commit was begun.   OutOfRange: more than that was begun for; the
  //   commit is given up.
  absl::Status Append(absl::string_view part);

  // Instead of Begin: what is appended from now on is not written, but compared with the newest
  // commit, by length and checksum.   NotFound: there is none.
  absl::Status BeginComparison();
  // Whether it was all the same; false if no comparison was begun.
  bool EndComparison();

  // Makes it, as it is now, the newest commit.   FailedPrecondition: no commit was begun.
  absl::Status Seal(uint64_t number);

  struct Commit {
    uint64_t number = 0;
    absl::string_view contents;
  };
  // The newest that is whole by its checksum, which takes its time; nullopt: there is none.
  std::optional<Commit> Newest();

 private:
  struct Header;
  struct Mapping {
    char* memory = nullptr;
    size_t bytes = 0;
    bool taken = false;  // all of its memory is there
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
  // The first `bytes` of a slot; for writing they are taken from the system now, so that there is
  // no surprise later.
  absl::StatusOr<char*> Map(int slot, size_t bytes, bool for_writing)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int ChooseSlot(const void* keep) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsIn(int slot, const void* place) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int NewestSealed() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // To what is pending, for which there is room.
  void Add(absl::string_view part) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Fd memory_;
  absl::Mutex mutex_;
  Header* header_ = nullptr;
  // By slot, the present one last.
  std::vector<Mapping> mappings_[kSlots] ABSL_GUARDED_BY(mutex_);
  std::optional<Pending> pending_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hvd::worker_runtime::commit_store

#endif  // WORKER_RUNTIME_COMMIT_STORE_COMMIT_ARENA_H_
