// The collective algorithms over point-to-point messages. Each function is one phase; an operation
// of LinksCommunicator consists of one or two phases.
//   - Direct: all ranks exchange with all others at once. One latency, so best for small data in
//     small groups.
//   - Ring, chain: each rank sends to the next rank and receives from the previous one, in
//     segments, so that sending, receiving and reducing overlap and the working set stays in the
//     cache. Moves as many bytes as direct.
//   - Doubling, tree: log2(size) latencies, and as many peers. For small data in large groups.
// Each phase first links the ranks that it needs (neighbours.h).
#ifndef COLLECTIVES_LINKS_ALGORITHMS_H_
#define COLLECTIVES_LINKS_ALGORITHMS_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "collectives/block.h"
#include "collectives/links/peers.h"
#include "collectives/links/scratch.h"
#include "collectives/reduce.h"

namespace hvd::collectives::links {

// An element-wise reduction.
struct ElementReduction {
  ReduceFunction function = nullptr;
  size_t element_bytes = 1;
};

// The common arguments of all phases.
struct Phase {
  const Peers& peers;
  Scratch& scratch;
  absl::Duration timeout;  // of each wait; see Region
};

// out = in_0 op in_1 op ..., in rank order on every rank. `out` may equal `in`.
absl::Status DirectAllReduce(const Phase& phase, const void* in, void* out, size_t bytes,
                             const ElementReduction& reduction);

// Rank r gets block r of the reduced `in` at `out`, which may be block r of `in` itself.
absl::Status DirectReduceScatter(const Phase& phase, const void* in, void* out,
                                 const std::vector<Block>& blocks,
                                 const ElementReduction& reduction);

// The same result as DirectReduceScatter, but block r is reduced along the ring, in the order of
// ranks r+1, r+2, ..., r. With `whole_out`, `out` is as large as `in` and may equal it, block r is
// stored at its offset, and the other blocks are used as scratch: for the first phase of an
// all-reduce.
absl::Status RingReduceScatter(const Phase& phase, const void* in, void* out, bool whole_out,
                               const std::vector<Block>& blocks, const ElementReduction& reduction);

// Before: every rank has its own block in `data`. After: every rank has all blocks.
absl::Status DirectAllGather(const Phase& phase, void* data, const std::vector<Block>& blocks);
// The same around the ring.
absl::Status RingAllGather(const Phase& phase, void* data, const std::vector<Block>& blocks);

// Every rank sends send[s] of `in` to each rank s and receives receive[s] of `out` from it.
absl::Status DirectAllToAll(const Phase& phase, const void* in, const std::vector<Block>& send,
                            void* out, const std::vector<Block>& receive);

// Sends `bytes` to `peer` and receives as many from it.
absl::Status Exchange(const Phase& phase, int peer, const void* in, void* out, size_t bytes);

absl::Status DirectBroadcast(const Phase& phase, void* buffer, size_t bytes, int root);
// The data travels from the root along the ring, in segments.
absl::Status ChainBroadcast(const Phase& phase, void* buffer, size_t bytes, int root);

// Recursive doubling: in each of log2(size) rounds pairs of ranks exchange their partial sums and
// add them. The result is bitwise equal on all ranks. `out` may equal `in`.
absl::Status DoublingAllReduce(const Phase& phase, const void* in, void* out, size_t bytes,
                               const ElementReduction& reduction);
// DoublingAllReduce of which each rank keeps only its block. Arguments as in DirectReduceScatter.
absl::Status DoublingReduceScatter(const Phase& phase, const void* in, void* out,
                                   const std::vector<Block>& blocks,
                                   const ElementReduction& reduction);
// All-gather in log2(size) rounds, each of which doubles the number of blocks that a rank has.
absl::Status DoublingAllGather(const Phase& phase, void* data, const std::vector<Block>& blocks);
// All-gather of blocks of equal size: a gather to rank 0, then a broadcast from it, both over the
// links of rank 0's tree.
absl::Status TreeAllGather(const Phase& phase, void* data, size_t block_bytes);
absl::Status TreeBroadcast(const Phase& phase, void* buffer, size_t bytes, int root);

// The dissemination barrier: in round k every rank receives a message from the rank 2^k before it.
// A rank that has completed all rounds depends, directly or indirectly, on a message of every rank.
absl::Status DisseminationBarrier(const Phase& phase);

}  // namespace hvd::collectives::links

#endif  // COLLECTIVES_LINKS_ALGORITHMS_H_
