// The shared-memory rings for large data: each rank writes blocks into its ring, and all others
// read them.
#ifndef COLLECTIVES_SHM_BLOCK_RING_H_
#define COLLECTIVES_SHM_BLOCK_RING_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "collectives/shm/shm_links.h"

namespace hvd::collectives::shm {

// Not thread-safe; every rank must make the same calls. `links` must outlive it.
//
// An operation is a pipeline over a number of blocks, the same number on all ranks. Each block
// passes three stages: a rank contributes the parts that others need; when all ranks have
// contributed, it reduces its own part; when all have reduced, it drains the others' results. A
// rank runs any stage of any block that is ready, and waits only if none is.
class BlockRing {
 public:
  explicit BlockRing(ShmLinks& links) : links_(links) {}

  // Runs one stage of block number `block` of the operation, whose number in the rings is `place`
  // (see Segment::chunk).
  using Stage = absl::FunctionRef<void(size_t block, uint64_t place)>;

  // Errors: those of ShmLinks::Await.
  absl::Status ContributeReduceDrain(size_t blocks, Stage contribute, Stage reduce, Stage drain,
                                     absl::Duration timeout);
  // Without the reduce stage: a rank drains the others' contributions.
  // Errors: those of ShmLinks::Await.
  absl::Status ContributeDrain(size_t blocks, Stage contribute, Stage drain,
                               absl::Duration timeout);

 private:
  using Counter = std::atomic<uint64_t> segment::RankState::*;

  // The progress of this rank, in places.
  struct Progress {
    uint64_t contributed, reduced, drained, end;
  };

  // `reduce` may be nullptr.
  absl::Status Run(size_t blocks, Stage contribute, const Stage* reduce, Stage drain,
                   absl::Duration timeout);
  // The first rank whose counter is below `count`; -1: none.
  int Behind(Counter counter, uint64_t count) const;
  int BlocksContributing(const Progress& progress) const;
  void Publish(Counter counter, uint64_t count);
  Progress Begin(size_t blocks);

  ShmLinks& links_;
  uint64_t next_ = 0;  // the place of the next operation's first block
};

}  // namespace hvd::collectives::shm

#endif  // COLLECTIVES_SHM_BLOCK_RING_H_
