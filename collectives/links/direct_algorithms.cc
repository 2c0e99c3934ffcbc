#include <cstring>

#include "base/status_macros.h"
#include "collectives/links/algorithms.h"

namespace hvd::collectives::links {
namespace {

// Regions serve both directions and so need a pointer to non-const; memory that is only sent is not
// written to.
void* Mutable(const void* data) { return const_cast<void*>(data); }

const char* At(const void* data, size_t offset) { return static_cast<const char*>(data) + offset; }
char* At(void* data, size_t offset) { return static_cast<char*>(data) + offset; }

}  // namespace

absl::Status DirectAllReduce(const Phase& phase, const void* in, void* out, size_t bytes,
                             const ElementReduction& reduction) {
  const int size = phase.peers.size(), rank = phase.peers.rank();
  RETURN_IF_ERROR(phase.peers.ConnectAll(phase.timeout));
  const size_t count = bytes / reduction.element_bytes;
  char* others = phase.scratch.Get(bytes * size);
  {
    Peers::Region receive(phase.peers, others, bytes * size);
    Peers::Region send(phase.peers, Mutable(in), bytes);
    for (int peer = 0; peer < size; ++peer) {
      if (peer == rank) continue;
      RETURN_IF_ERROR(receive.Receive(peer, peer * bytes, bytes));
      RETURN_IF_ERROR(send.Send(peer, 0, bytes));
    }
    for (int peer = 0; peer < size; ++peer) {
      if (peer == rank) continue;
      RETURN_IF_ERROR(receive.AwaitReceived(peer, phase.timeout));
      RETURN_IF_ERROR(send.AwaitSent(peer, phase.timeout));
    }
  }
  // All ranks add in rank order, so that the results are bitwise equal. Partial sums go to the
  // scratch memory, in place of rank 0's data. Only the last step writes to `out`, which may equal
  // `in`, since `in` is needed until then.
  const auto of = [&](int r) { return r == rank ? At(in, 0) : others + r * bytes; };
  if (size == 2) {
    reduction.function(out, of(0), of(1), count);
    return absl::OkStatus();
  }
  reduction.function(others, of(0), of(1), count);
  for (int r = 2; r < size; ++r) {
    reduction.function(r == size - 1 ? out : others, others, of(r), count);
  }
  return absl::OkStatus();
}

// Receives block `rank` of every rank into scratch memory, then adds the blocks in rank order. As
// above, only the last step writes to `out`.
absl::Status DirectReduceScatter(const Phase& phase, const void* in, void* out,
                                 const std::vector<Block>& blocks,
                                 const ElementReduction& reduction) {
  const int size = phase.peers.size(), rank = phase.peers.rank();
  const Block own = blocks[rank];
  char* others = phase.scratch.Get(own.bytes * size);
  std::vector<Block> receive(size);
  for (int r = 0; r < size; ++r) receive[r] = {r * own.bytes, own.bytes};
  RETURN_IF_ERROR(DirectAllToAll(phase, in, blocks, others, receive));
  const size_t count = own.bytes / reduction.element_bytes;
  for (int r = 1; r < size; ++r) {
    reduction.function(r == size - 1 ? out : others, others, others + r * own.bytes, count);
  }
  return absl::OkStatus();
}

absl::Status DirectAllGather(const Phase& phase, void* data, const std::vector<Block>& blocks) {
  const int size = phase.peers.size(), rank = phase.peers.rank();
  RETURN_IF_ERROR(phase.peers.ConnectAll(phase.timeout));
  Peers::Region region(phase.peers, data, blocks.back().offset + blocks.back().bytes);
  const Block own = blocks[rank];
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank) continue;
    if (blocks[peer].bytes > 0) {
      RETURN_IF_ERROR(region.Receive(peer, blocks[peer].offset, blocks[peer].bytes));
    }
    if (own.bytes > 0) RETURN_IF_ERROR(region.Send(peer, own.offset, own.bytes));
  }
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank) continue;
    if (blocks[peer].bytes > 0) RETURN_IF_ERROR(region.AwaitReceived(peer, phase.timeout));
    if (own.bytes > 0) RETURN_IF_ERROR(region.AwaitSent(peer, phase.timeout));
  }
  return absl::OkStatus();
}

absl::Status DirectAllToAll(const Phase& phase, const void* in, const std::vector<Block>& send,
                            void* out, const std::vector<Block>& receive) {
  const int size = phase.peers.size(), rank = phase.peers.rank();
  RETURN_IF_ERROR(phase.peers.ConnectAll(phase.timeout));
  Peers::Region from(phase.peers, Mutable(in), send.back().offset + send.back().bytes);
  Peers::Region to(phase.peers, out, receive.back().offset + receive.back().bytes);
  // Each rank starts with a different peer, so that they don't all send to rank 0 first.
  for (int i = 1; i < size; ++i) {
    const int target = (rank + i) % size, source = (rank - i + size) % size;
    if (receive[source].bytes > 0) {
      RETURN_IF_ERROR(to.Receive(source, receive[source].offset, receive[source].bytes));
    }
    if (send[target].bytes > 0) {
      RETURN_IF_ERROR(from.Send(target, send[target].offset, send[target].bytes));
    }
  }
  if (receive[rank].bytes > 0) {
    std::memcpy(At(out, receive[rank].offset), At(in, send[rank].offset), receive[rank].bytes);
  }
  for (int i = 1; i < size; ++i) {
    const int target = (rank + i) % size, source = (rank - i + size) % size;
    if (receive[source].bytes > 0) RETURN_IF_ERROR(to.AwaitReceived(source, phase.timeout));
    if (send[target].bytes > 0) RETURN_IF_ERROR(from.AwaitSent(target, phase.timeout));
  }
  return absl::OkStatus();
}

absl::Status Exchange(const Phase& phase, int peer, const void* in, void* out, size_t bytes) {
  RETURN_IF_ERROR(phase.peers.Connect({peer}, phase.timeout));
  Peers::Region receive(phase.peers, out, bytes), send(phase.peers, Mutable(in), bytes);
  RETURN_IF_ERROR(receive.Receive(peer, 0, bytes));
  RETURN_IF_ERROR(send.Send(peer, 0, bytes));
  RETURN_IF_ERROR(receive.AwaitReceived(peer, phase.timeout));
  return send.AwaitSent(peer, phase.timeout);
}

absl::Status DirectBroadcast(const Phase& phase, void* buffer, size_t bytes, int root) {
  RETURN_IF_ERROR(phase.peers.ConnectAll(phase.timeout));
  Peers::Region region(phase.peers, buffer, bytes);
  if (phase.peers.rank() != root) {
    RETURN_IF_ERROR(region.Receive(root, 0, bytes));
    return region.AwaitReceived(root, phase.timeout);
  }
  for (int peer = 0; peer < phase.peers.size(); ++peer) {
    if (peer != root) RETURN_IF_ERROR(region.Send(peer, 0, bytes));
  }
  for (int peer = 0; peer < phase.peers.size(); ++peer) {
    if (peer != root) RETURN_IF_ERROR(region.AwaitSent(peer, phase.timeout));
  }
  return absl::OkStatus();
}

}  // namespace hvd::collectives::links
