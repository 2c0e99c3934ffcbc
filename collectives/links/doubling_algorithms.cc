#include <algorithm>
#include <array>
#include <cstring>

#include "base/status_macros.h"
#include "collectives/links/algorithms.h"
#include "collectives/links/neighbours.h"

namespace hvd::collectives::links {
namespace {

// An all-reduce by recursive doubling, in place. (Described in R. Thakur, R. Rabenseifner, W.
// Gropp, "Optimization of Collective Communication Operations in MPICH", 2005.)
//
// Let P be the largest power of two up to the number of ranks. Each rank from P on sends its data
// to a partner below P, which adds it. Then the first P ranks run log2(P) rounds: in round k rank r
// exchanges its partial sum with rank r XOR 2^k, and both add the two. At the end the partners send
// the result back.
class PairwiseSum {
 public:
  PairwiseSum(const Phase& phase, char* sum, char* theirs, size_t bytes,
              const ElementReduction& reduction)
      : phase_(phase),
        sum_(sum),
        theirs_(theirs),
        bytes_(bytes),
        reduction_(reduction),
        out_(phase.peers, sum, bytes),
        in_(phase.peers, theirs, bytes) {}

  absl::Status Run() {
    const Doubling doubling = RecursiveDoubling(phase_.peers.rank(), phase_.peers.size());
    if (doubling.stands_in >= 0) {
      RETURN_IF_ERROR(Send(doubling.stands_in));
      return Receive(out_, doubling.stands_in);
    }
    if (doubling.stands_in_for >= 0) {
      RETURN_IF_ERROR(Receive(in_, doubling.stands_in_for));
      Add(doubling.stands_in_for);
    }
    for (const int partner : doubling.pairs) {
      // Both ranks post the receive before they wait for the send, so neither waits for the other.
      // Send() returns when the data has been sent: only then may Add() overwrite `sum_`.
      RETURN_IF_ERROR(in_.Receive(partner, 0, bytes_));
      RETURN_IF_ERROR(Send(partner));
      RETURN_IF_ERROR(in_.AwaitReceived(partner, phase_.timeout));
      Add(partner);
    }
    return doubling.stands_in_for < 0 ? absl::OkStatus() : Send(doubling.stands_in_for);
  }

 private:
  absl::Status Send(int peer) {
    RETURN_IF_ERROR(out_.Send(peer, 0, bytes_));
    return out_.AwaitSent(peer, phase_.timeout);
  }

  absl::Status Receive(Peers::Region& into, int peer) {
    RETURN_IF_ERROR(into.Receive(peer, 0, bytes_));
    return into.AwaitReceived(peer, phase_.timeout);
  }

  // The lower rank's operand comes first on both ranks of a pair, so that their results are bitwise
  // equal: for NaNs even a sum depends on the order.
  void Add(int partner) {
    const bool theirs_first = partner < phase_.peers.rank();
    reduction_.function(sum_, theirs_first ? theirs_ : sum_, theirs_first ? sum_ : theirs_,
                        bytes_ / reduction_.element_bytes);
  }

  const Phase& phase_;
  char* const sum_;
  char* const theirs_;
  const size_t bytes_;
  const ElementReduction& reduction_;
  Peers::Region out_, in_;
};

absl::Status SumPairwise(const Phase& phase, char* sum, char* theirs, size_t bytes,
                         const ElementReduction& reduction) {
  const Doubling doubling = RecursiveDoubling(phase.peers.rank(), phase.peers.size());
  RETURN_IF_ERROR(phase.peers.Connect(doubling.Neighbours(), phase.timeout));
  return PairwiseSum(phase, sum, theirs, bytes, reduction).Run();
}

// The memory of the `count` blocks from `first` on, modulo the number of blocks: one or two
// contiguous ranges.
std::array<Block, 2> Stretches(const std::vector<Block>& blocks, int first, int count) {
  const auto span = [&](int from, int to) {
    if (from >= to) return Block();
    const Block& last = blocks[to - 1];
    return Block{blocks[from].offset, last.offset + last.bytes - blocks[from].offset};
  };
  const int size = static_cast<int>(blocks.size());
  return {span(first, std::min(first + count, size)), span(0, std::max(first + count - size, 0))};
}

}  // namespace

absl::Status DoublingAllReduce(const Phase& phase, const void* in, void* out, size_t bytes,
                               const ElementReduction& reduction) {
  if (out != in && bytes > 0) std::memcpy(out, in, bytes);
  return SumPairwise(phase, static_cast<char*>(out), phase.scratch.Get(bytes), bytes, reduction);
}

absl::Status DoublingReduceScatter(const Phase& phase, const void* in, void* out,
                                   const std::vector<Block>& blocks,
                                   const ElementReduction& reduction) {
  const size_t bytes = blocks.back().offset + blocks.back().bytes;
  char* const sum = phase.scratch.Get(2 * bytes);
  if (bytes > 0) std::memcpy(sum, in, bytes);  // memcpy must not get the null pointer of 0 bytes
  RETURN_IF_ERROR(SumPairwise(phase, sum, sum + bytes, bytes, reduction));
  const Block& own = blocks[phase.peers.rank()];
  if (own.bytes > 0) std::memcpy(out, sum + own.offset, own.bytes);
  return absl::OkStatus();
}

// Bruck's algorithm (J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal, D. Weathersby, "Efficient Algorithms
// for All-to-All Communications in Multiport Message-Passing Systems", 1997). Before a round the
// rank has the `have` blocks from its own on, modulo the size. It sends them to the rank `have`
// before it, and receives those of the rank `have` after it, which follow its own. The last round
// moves only the blocks that are missing. Blocks are received in place, so nothing is rotated at
// the end. Empty messages are omitted: both ends know all sizes.
absl::Status DoublingAllGather(const Phase& phase, void* data, const std::vector<Block>& blocks) {
  const int size = phase.peers.size(), rank = phase.peers.rank();
  RETURN_IF_ERROR(phase.peers.Connect(StepNeighbours(rank, size), phase.timeout));
  Peers::Region region(phase.peers, data, blocks.back().offset + blocks.back().bytes);
  for (int have = 1; have < size; have *= 2) {
    const int from = (rank + have) % size, to = (rank - have + size) % size;
    const int count = std::min(have, size - have);
    const auto wanted = Stretches(blocks, from, count), given = Stretches(blocks, rank, count);
    for (const Block& part : wanted) {
      if (part.bytes > 0) RETURN_IF_ERROR(region.Receive(from, part.offset, part.bytes));
    }
    for (const Block& part : given) {
      if (part.bytes > 0) RETURN_IF_ERROR(region.Send(to, part.offset, part.bytes));
    }
    for (const Block& part : wanted) {
      if (part.bytes > 0) RETURN_IF_ERROR(region.AwaitReceived(from, phase.timeout));
    }
    for (const Block& part : given) {
      if (part.bytes > 0) RETURN_IF_ERROR(region.AwaitSent(to, phase.timeout));
    }
  }
  return absl::OkStatus();
}

// In a binomial tree with root 0 the ranks of a subtree are consecutive, so each rank sends the
// blocks of its subtree to its parent as one message.
absl::Status TreeAllGather(const Phase& phase, void* data, size_t block_bytes) {
  const int size = phase.peers.size(), rank = phase.peers.rank();
  const Tree tree = BinomialTree(rank, size, 0);
  RETURN_IF_ERROR(phase.peers.Connect(tree.Neighbours(), phase.timeout));
  {
    Peers::Region region(phase.peers, data, size * block_bytes);
    for (const int child : tree.children) {
      const size_t blocks = BinomialTree(child, size, 0).below;
      RETURN_IF_ERROR(region.Receive(child, child * block_bytes, blocks * block_bytes));
    }
    for (const int child : tree.children) {
      RETURN_IF_ERROR(region.AwaitReceived(child, phase.timeout));
    }
    if (tree.parent >= 0) {
      RETURN_IF_ERROR(region.Send(tree.parent, rank * block_bytes, tree.below * block_bytes));
      RETURN_IF_ERROR(region.AwaitSent(tree.parent, phase.timeout));
    }
  }
  return TreeBroadcast(phase, data, size * block_bytes, 0);
}

absl::Status TreeBroadcast(const Phase& phase, void* buffer, size_t bytes, int root) {
  const Tree tree = BinomialTree(phase.peers.rank(), phase.peers.size(), root);
  RETURN_IF_ERROR(phase.peers.Connect(tree.Neighbours(), phase.timeout));
  Peers::Region region(phase.peers, buffer, bytes);
  if (tree.parent >= 0) {
    RETURN_IF_ERROR(region.Receive(tree.parent, 0, bytes));
    RETURN_IF_ERROR(region.AwaitReceived(tree.parent, phase.timeout));
  }
  for (const int child : tree.children) RETURN_IF_ERROR(region.Send(child, 0, bytes));
  for (const int child : tree.children) RETURN_IF_ERROR(region.AwaitSent(child, phase.timeout));
  return absl::OkStatus();
}

// From D. Hensgen, R. Finkel, U. Manber, "Two Algorithms for Barrier Synchronization", 1988. After
// the round with distance 2^k a rank knows that the 2^(k+1)-1 ranks before it have entered.
absl::Status DisseminationBarrier(const Phase& phase) {
  const int size = phase.peers.size(), rank = phase.peers.rank();
  RETURN_IF_ERROR(phase.peers.Connect(StepNeighbours(rank, size), phase.timeout));
  char token[2] = {0, 0};
  Peers::Region region(phase.peers, token, sizeof(token));
  for (int distance = 1; distance < size; distance *= 2) {
    const int to = (rank + distance) % size, from = (rank - distance + size) % size;
    RETURN_IF_ERROR(region.Receive(from, 1, 1));
    RETURN_IF_ERROR(region.Send(to, 0, 1));
    RETURN_IF_ERROR(region.AwaitReceived(from, phase.timeout));
    RETURN_IF_ERROR(region.AwaitSent(to, phase.timeout));
  }
  return absl::OkStatus();
}

}  // namespace hvd::collectives::links
