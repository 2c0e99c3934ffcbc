// Copies of a commit's parts into its memory, by several threads.
#ifndef WORKER_RUNTIME_COMMIT_STORE_PART_COPIES_H_
#define WORKER_RUNTIME_COMMIT_STORE_PART_COPIES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "worker_runtime/commit_store/thread_team.h"

namespace hvd::worker_runtime::commit_store {

// The parts of a commit begin at multiples of this; what is between them is 0.
constexpr size_t kPartAlignment = 64;

// Bytes of a commit, with their own checksum.
struct CopiedStretch {
  size_t offset = 0, size = 0;
  uint32_t checksum = 0;
};

// Copies that are added first, and made together by Run. Not thread-safe.
class PartCopies {
 public:
  // `memory` is a multiple of kPartAlignment; nullptr: nothing is copied, there are only checksums.
  // `begin` bytes of the commit are there already, with `checksum`.
  PartCopies(char* memory, size_t begin, uint32_t checksum)
      : memory_(memory), end_(begin), checksum_(checksum) {}

  // Adds a part, which must stay valid until Run returns, and the gap before it.
  void Add(absl::string_view part);
  // The end of the last part.
  size_t end() const { return end_; }

  // Makes the copies on at most `threads` threads of the team. Returns the checksum of the commit
  // up to end().
  uint32_t Run(ThreadTeam& team, int threads);
  // Adds the stretches of all parts, and the gaps, in order, without empty ones. REQUIRES: Run has
  // returned.
  void AddTo(std::vector<CopiedStretch>& stretches) const;

 private:
  // A stretch of one part, or a gap.
  struct Stretch {
    size_t offset;
    absl::string_view data;
    uint32_t checksum = 0;
  };
  // Stretches that follow each other, for one thread.
  struct Task {
    size_t first = 0, last = 0;  // numbers of stretches
    size_t bytes = 0;
    uint32_t checksum = 0;
  };

  void AddStretch(absl::string_view data);
  uint32_t Copy(Stretch& stretch) const;
  uint32_t Copy(const Task& task);

  char* const memory_;
  size_t end_;
  const uint32_t checksum_;
  std::vector<Stretch> stretches_;
  std::vector<Task> tasks_;
};

}  // namespace hvd::worker_runtime::commit_store

#endif  // WORKER_RUNTIME_COMMIT_STORE_PART_COPIES_H_
