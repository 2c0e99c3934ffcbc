#include <algorithm>
#include <memory>

#include "base/status_macros.h"
#include "collectives/links/algorithms.h"
#include "collectives/links/neighbours.h"

namespace hvd::collectives::links {
namespace {

// The segment sizes. Segments are small enough that received data is still in the cache when it is
// reduced, and large enough that the cost of a message does not matter. They are multiples of every
// element size.
constexpr size_t kReduceSegmentBytes = 512 * 1024;
constexpr size_t kCopySegmentBytes = 4 * 1024 * 1024;
// The number of receives that are posted in advance, so that the sender need not wait for one.
constexpr size_t kAhead = 4;

char* At(void* data, size_t offset) { return static_cast<char*>(data) + offset; }
const char* At(const void* data, size_t offset) { return static_cast<const char*>(data) + offset; }

// A segment of the block that a rank receives in one step of a ring.
struct Item {
  int step = 0;
  Block part;  // its range in the whole buffer
};

void AppendSegments(int step, const Block& block, size_t segment_bytes, std::vector<Item>& items) {
  for (size_t done = 0; done < block.bytes; done += segment_bytes) {
    items.push_back({step, {block.offset + done, std::min(segment_bytes, block.bytes - done)}});
  }
}

// The segments that `rank` receives in the size-1 steps of a ring, in order. In step s it receives
// block (rank - shift - s) modulo size.
std::vector<Item> ReceivedItems(const std::vector<Block>& blocks, int rank, int shift,
                                size_t segment_bytes) {
  const int size = static_cast<int>(blocks.size());
  std::vector<Item> items;
  for (int step = 0; step < size - 1; ++step) {
    AppendSegments(step, blocks[(rank - shift - step + 2 * size) % size], segment_bytes, items);
  }
  return items;
}

std::vector<Item> Segments(const Block& block, size_t segment_bytes) {
  std::vector<Item> items;
  AppendSegments(0, block, segment_bytes, items);
  return items;
}

// The memory for the partial sums of a ring reduce-scatter, from which they are sent on. If `out`
// is as large as `in`, each sum is stored at its place in `out`. Otherwise two buffers of the
// largest block's size are used alternately, one per step; see reused().
class Partials {
 public:
  Partials(const Phase& phase, void* out, bool whole_out, const std::vector<Block>& blocks)
      : blocks_(blocks), rank_(phase.peers.rank()), out_(out), whole_out_(whole_out) {
    const Block& last = blocks.back();
    size_t bytes = last.offset + last.bytes;
    if (!whole_out) {
      for (const Block& block : blocks) largest_ = std::max(largest_, block.bytes);
      bytes = 2 * largest_;
      storage_.reset(new char[bytes]);
    }
    base_ = whole_out ? static_cast<char*>(out) : storage_.get();
    region_ = std::make_unique<Peers::Region>(phase.peers, base_, bytes);
  }

  // The address for the sum of `item`.
  char* Place(const Item& item) {
    if (!whole_out_ && IsLast(item)) return At(out_, item.part.offset - blocks_[rank_].offset);
    return base_ + Offset(item);
  }
  // Its offset within region().
  size_t Offset(const Item& item) const {
    if (whole_out_) return item.part.offset;
    return (item.step % 2) * largest_ + (item.part.offset - BlockOf(item).offset);
  }
  Peers::Region& region() { return *region_; }
  // Whether the memory of a step is used again two steps later.
  bool reused() const { return !whole_out_; }
  // The last step completes this rank's own block, which is not sent on.
  bool IsLast(const Item& item) const { return item.step == static_cast<int>(blocks_.size()) - 2; }

 private:
  const Block& BlockOf(const Item& item) const {
    const int size = static_cast<int>(blocks_.size());
    return blocks_[(rank_ - 2 - item.step + 2 * size) % size];
  }

  const std::vector<Block>& blocks_;
  const int rank_;
  void* const out_;
  const bool whole_out_;
  size_t largest_ = 0;
  std::unique_ptr<char[]> storage_;
  char* base_ = nullptr;
  std::unique_ptr<Peers::Region> region_;
};

}  // namespace

// The ring algorithm (P. Patarasuk, X. Yuan, "Bandwidth Optimal All-reduce Algorithms for Clusters
// of Workstations", 2009), pipelined in segments. Block numbers are modulo size.
//
// A rank first sends its own part of block rank-1 to the next rank. In step s it receives the
// partial sum of block rank-2-s, adds its own part, and sends the result on: that is the next
// rank's step s+1. In the last step, s = size-2, it receives the partial sum of block `rank` and
// completes it. So a rank sends size-1 blocks, and block r is summed in the order of ranks r+1,
// r+2, ..., r.
//
// Two pipelines overlap with the additions. Receiving: segment i is received into place i % kAhead
// of `landing`; the receive for segment i+kAhead is posted when segment i has been added, since the
// place is free then. Sending: partial sums are sent from Partials without waiting, except as noted
// below. Messages need no tags, because both ends handle the segments in the order of `items`.
absl::Status RingReduceScatter(const Phase& phase, const void* in, void* out, bool whole_out,
                               const std::vector<Block>& blocks,
                               const ElementReduction& reduction) {
  const int size = phase.peers.size(), rank = phase.peers.rank();
  const int next = (rank + 1) % size, previous = (rank - 1 + size) % size;
  RETURN_IF_ERROR(phase.peers.Connect(RingNeighbours(rank, size), phase.timeout));
  const std::vector<Item> items = ReceivedItems(blocks, rank, 2, kReduceSegmentBytes);
  const std::vector<Item> first = Segments(blocks[previous], kReduceSegmentBytes);
  const Block& last = blocks.back();

  char* landing = phase.scratch.Get(kAhead * kReduceSegmentBytes);
  Peers::Region receive(phase.peers, landing, kAhead * kReduceSegmentBytes);
  Peers::Region send(phase.peers, const_cast<void*>(in), last.offset + last.bytes);
  Partials partials(phase, out, whole_out, blocks);

  const auto post = [&](size_t i) {
    if (i >= items.size()) return absl::OkStatus();
    return receive.Receive(previous, (i % kAhead) * kReduceSegmentBytes, items[i].part.bytes);
  };
  for (size_t i = 0; i < kAhead; ++i) RETURN_IF_ERROR(post(i));
  for (const Item& item : first) {
    RETURN_IF_ERROR(send.Send(next, item.part.offset, item.part.bytes));
  }
  // Counts: partial sums whose sending has started; those of them that have been sent completely;
  // items that are at least two steps older than `item`.
  size_t passed_on = 0, left = 0;
  size_t two_steps_ago = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    const Item& item = items[i];
    // If step s uses the memory of step s-2 again, the sums of that step must have been sent. Sends
    // to one peer complete in order, so counting them is enough.
    while (items[two_steps_ago].step <= item.step - 2) ++two_steps_ago;
    for (; partials.reused() && left < two_steps_ago; ++left) {
      RETURN_IF_ERROR(partials.region().AwaitSent(next, phase.timeout));
    }
    RETURN_IF_ERROR(receive.AwaitReceived(previous, phase.timeout));
    reduction.function(partials.Place(item), landing + (i % kAhead) * kReduceSegmentBytes,
                       At(in, item.part.offset), item.part.bytes / reduction.element_bytes);
    RETURN_IF_ERROR(post(i + kAhead));
    if (!partials.IsLast(item)) {
      RETURN_IF_ERROR(partials.region().Send(next, partials.Offset(item), item.part.bytes));
      ++passed_on;
    }
  }
  for (; left < passed_on; ++left) {
    RETURN_IF_ERROR(partials.region().AwaitSent(next, phase.timeout));
  }
  for (size_t i = 0; i < first.size(); ++i) {
    RETURN_IF_ERROR(send.AwaitSent(next, phase.timeout));
  }
  return absl::OkStatus();
}

// A rank first sends its own block to the next rank. In step s it receives block rank-1-s into its
// final place and sends it on. The last step, size-2, brings the next rank's own block, which is
// not sent on.
absl::Status RingAllGather(const Phase& phase, void* data, const std::vector<Block>& blocks) {
  const int size = phase.peers.size(), rank = phase.peers.rank();
  const int next = (rank + 1) % size, previous = (rank - 1 + size) % size;
  RETURN_IF_ERROR(phase.peers.Connect(RingNeighbours(rank, size), phase.timeout));
  const std::vector<Item> items = ReceivedItems(blocks, rank, 1, kCopySegmentBytes);
  Peers::Region region(phase.peers, data, blocks.back().offset + blocks.back().bytes);

  const auto post = [&](size_t i) {
    if (i >= items.size()) return absl::OkStatus();
    return region.Receive(previous, items[i].part.offset, items[i].part.bytes);
  };
  size_t sent = 0;
  for (size_t i = 0; i < kAhead; ++i) RETURN_IF_ERROR(post(i));
  for (const Item& item : Segments(blocks[rank], kCopySegmentBytes)) {
    RETURN_IF_ERROR(region.Send(next, item.part.offset, item.part.bytes));
    ++sent;
  }
  for (size_t i = 0; i < items.size(); ++i) {
    RETURN_IF_ERROR(region.AwaitReceived(previous, phase.timeout));
    RETURN_IF_ERROR(post(i + kAhead));
    if (items[i].step == size - 2) continue;
    RETURN_IF_ERROR(region.Send(next, items[i].part.offset, items[i].part.bytes));
    ++sent;
  }
  for (; sent > 0; --sent) RETURN_IF_ERROR(region.AwaitSent(next, phase.timeout));
  return absl::OkStatus();
}

// Each rank sends a segment on as soon as it has arrived, so that all links of the chain work at
// the same time. The chain ends at the rank before the root.
absl::Status ChainBroadcast(const Phase& phase, void* buffer, size_t bytes, int root) {
  const int size = phase.peers.size(), rank = phase.peers.rank();
  const int next = (rank + 1) % size, previous = (rank - 1 + size) % size;
  RETURN_IF_ERROR(phase.peers.Connect(RingNeighbours(rank, size), phase.timeout));
  const std::vector<Item> items = Segments({0, bytes}, kReduceSegmentBytes);
  Peers::Region region(phase.peers, buffer, bytes);

  const auto post = [&](size_t i) {
    if (rank == root || i >= items.size()) return absl::OkStatus();
    return region.Receive(previous, items[i].part.offset, items[i].part.bytes);
  };
  for (size_t i = 0; i < kAhead; ++i) RETURN_IF_ERROR(post(i));
  for (size_t i = 0; i < items.size(); ++i) {
    if (rank != root) RETURN_IF_ERROR(region.AwaitReceived(previous, phase.timeout));
    RETURN_IF_ERROR(post(i + kAhead));
    if (next != root) RETURN_IF_ERROR(region.Send(next, items[i].part.offset, items[i].part.bytes));
  }
  if (next == root) return absl::OkStatus();
  for (size_t i = 0; i < items.size(); ++i) {
    RETURN_IF_ERROR(region.AwaitSent(next, phase.timeout));
  }
  return absl::OkStatus();
}

}  // namespace hvd::collectives::links
