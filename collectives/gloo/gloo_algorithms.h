// The collective algorithms over point-to-point messages. Each function is one phase; a
// communicator's operation is one or two of them.
//
// "Direct": all ranks exchange with all others at once. One latency, so best for small data in
// small groups. "Ring": each rank sends to the next rank and receives from the one before, in
// segments, so that sending, receiving and reducing overlap and the working set stays in cache.
// Both move the same number of bytes. "Doubling", "tree": log2(size) latencies, and as many peers:
// for small data in large groups. Each phase links the ranks that it needs (neighbours.h).
#ifndef COLLECTIVES_GLOO_GLOO_ALGORITHMS_H_
#define COLLECTIVES_GLOO_GLOO_ALGORITHMS_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "collectives/gloo/gloo_peers.h"
#include "collectives/gloo/scratch.h"
#include "collectives/reduce.h"

namespace hvd::collectives::gloo {

// A part of a buffer, in bytes.
struct Block {
  size_t offset = 0;
  size_t bytes = 0;
};

// Contiguous blocks with sizes counts[r] * unit.
std::vector<Block> LayOut(absl::Span<const size_t> counts, size_t unit);
// `count` elements in `parts` blocks that differ by one element at most.
std::vector<Block> LayOutEvenly(size_t count, size_t unit, int parts);

// The reduction of elements, without the buffers.
struct ElementReduction {
  ReduceFunction function = nullptr;
  size_t element_bytes = 1;
};

// The common arguments of all phases.
struct Phase {
  const GlooPeers& peers;
  Scratch& scratch;
  absl::Time deadline;
};

// out = in_0 op in_1 op ..., in rank order on every rank. out may equal in.
absl::Status DirectAllReduce(const Phase& phase, const void* in, void* out, size_t bytes,
                             const ElementReduction& reduction);

// Rank r gets block r of the reduced `in` at `out`, which may lie in `in` if it is block r itself.
absl::Status DirectReduceScatter(const Phase& phase, const void* in, void* out,
                                 const std::vector<Block>& blocks,
                                 const ElementReduction& reduction);

// As above; each block is reduced in the order of the ring that ends at its rank. With `whole_out`,
// `out` is as large as `in` and may equal it, block r lies in its place, and the other blocks are
// used as scratch: a first phase of all-reduce.
absl::Status RingReduceScatter(const Phase& phase, const void* in, void* out, bool whole_out,
                               const std::vector<Block>& blocks, const ElementReduction& reduction);

// Before: every rank has its own block in `data`. After: all blocks.
absl::Status DirectAllGather(const Phase& phase, void* data, const std::vector<Block>& blocks);
absl::Status RingAllGather(const Phase& phase, void* data, const std::vector<Block>& blocks);

// Every rank sends send[s] of `in` to each rank s and receives receive[s] of `out` from it.
absl::Status DirectAllToAll(const Phase& phase, const void* in, const std::vector<Block>& send,
                            void* out, const std::vector<Block>& receive);

// Exchanges `bytes` with `peer`.
absl::Status Exchange(const Phase& phase, int peer, const void* in, void* out, size_t bytes);

absl::Status DirectBroadcast(const Phase& phase, void* buffer, size_t bytes, int root);
// From the root to the next rank, to the next, in segments.
absl::Status ChainBroadcast(const Phase& phase, void* buffer, size_t bytes, int root);

// Recursive doubling: in each of log2(size) rounds every rank's data goes to another rank, which
// adds its own. The same bits on all ranks. out may equal in.
absl::Status DoublingAllReduce(const Phase& phase, const void* in, void* out, size_t bytes,
                               const ElementReduction& reduction);
// The same; a rank keeps only its block. Arguments as in DirectReduceScatter.
absl::Status DoublingReduceScatter(const Phase& phase, const void* in, void* out,
                                   const std::vector<Block>& blocks,
                                   const ElementReduction& reduction);
// Every rank has twice as many blocks after each round.
absl::Status DoublingAllGather(const Phase& phase, void* data, const std::vector<Block>& blocks);
// Blocks of one size: to rank 0 and back, over the links of its tree only.
absl::Status TreeAllGather(const Phase& phase, void* data, size_t block_bytes);
absl::Status TreeBroadcast(const Phase& phase, void* buffer, size_t bytes, int root);

// In round k every rank receives a message from the one 2^k before it.
absl::Status DisseminationBarrier(const Phase& phase);

}  // namespace hvd::collectives::gloo

#endif  // COLLECTIVES_GLOO_GLOO_ALGORITHMS_H_
