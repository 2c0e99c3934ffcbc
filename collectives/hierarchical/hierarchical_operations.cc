// The operations of HierarchicalCommunicator, composed of those of the host and of the mesh.
#include <algorithm>
#include <numeric>
#include <vector>

#include "base/status_macros.h"
#include "collectives/hierarchical/hierarchical_communicator.h"

namespace hvd::collectives::hierarchical {
namespace {

// Up to this size only the first rank of each host exchanges sums with other hosts, which saves
// messages. Beyond, all columns do so in parallel, each for its share.
constexpr size_t kLeadersBytes = 64 * 1024;
// The size of a column's share of one chunk. Small enough that the data stays in the caches from
// step to step, large enough that the waits of each step cost little.
constexpr size_t kPartBytes = 1024 * 1024;
// Chunks let a host forward one chunk while the next one arrives.
constexpr size_t kBroadcastChunkBytes = 4 * 1024 * 1024;

char* At(void* data, size_t offset) { return static_cast<char*>(data) + offset; }
const char* At(const void* data, size_t offset) { return static_cast<const char*>(data) + offset; }

// `total` divided into `parts` shares that differ by one at most, followed by zeros: `all` numbers.
std::vector<size_t> Shares(size_t total, int parts, size_t all) {
  std::vector<size_t> shares(all, 0);
  for (int i = 0; i < parts; ++i) shares[i] = total / parts + (i < static_cast<int>(total % parts));
  return shares;
}

size_t SumOf(absl::Span<const size_t> counts, absl::Span<const int> ranks) {
  size_t sum = 0;
  for (const int rank : ranks) sum += counts[rank];
  return sum;
}

}  // namespace

absl::Status HierarchicalCommunicator::AllReduce(const void* in, void* out, size_t count,
                                                 DataType type, ReduceOp op,
                                                 const CallOptions& options) {
  return Run("allreduce", [&]() -> absl::Status {
    if (!options_.allreduce) return mesh_->AllReduce(in, out, count, type, op, options);
    const size_t unit = SizeOf(type);
    const int columns = count * unit <= kLeadersBytes ? 1 : layout_.columns();
    const size_t chunk = columns * kPartBytes / unit;
    for (size_t done = 0; done < count; done += chunk) {
      RETURN_IF_ERROR(ReduceChunk(At(in, done * unit), At(out, done * unit),
                                  std::min(chunk, count - done), {type, op, columns}, options));
    }
    return absl::OkStatus();
  });
}

// Three steps: reduce-scatter within the host, so that each rank of a column has the host's sum of
// its share; all-reduce of the share within the column, across hosts; all-gather within the host.
// So only one rank of each host sends a share over the network.
absl::Status HierarchicalCommunicator::ReduceChunk(const void* in, void* out, size_t count,
                                                   const Reduction& reduction,
                                                   const CallOptions& options) {
  const size_t unit = SizeOf(reduction.type);
  std::vector<size_t> shares = Shares(count, reduction.columns, layout_.members().size());
  const size_t own = shares[layout_.index];
  // The share is reduced at its place in `out`, so that no further memory is needed.
  const size_t before = std::accumulate(shares.begin(), shares.begin() + layout_.index, size_t{0});
  char* const part = At(out, before * unit);
  RETURN_IF_ERROR(
      InHost(local_->ReduceScatter(in, part, shares, reduction.type, reduction.op, options)));
  if (own > 0) {
    RETURN_IF_ERROR(column_->AllReduce(part, part, own, reduction.type, reduction.op, options));
  }
  for (size_t& share : shares) share *= unit;
  return InHost(local_->AllGather(part, out, shares, options));
}

// Three steps: all-gather within the host; the first ranks of all hosts exchange their hosts'
// sections; each of them broadcasts the other hosts' sections within its host. This requires that a
// host's blocks are contiguous in the result, so other layouts use the mesh.
absl::Status HierarchicalCommunicator::AllGather(const void* in, void* out,
                                                 absl::Span<const size_t> byte_counts,
                                                 const CallOptions& options) {
  return Run("allgather", [&]() -> absl::Status {
    if (!options_.allgather || !layout_.IsContiguous()) {
      return mesh_->AllGather(in, out, byte_counts, options);
    }
    std::vector<size_t> sections;
    for (const std::vector<int>& ranks : layout_.hosts) {
      sections.push_back(SumOf(byte_counts, ranks));
    }
    const auto own = sections.begin() + layout_.host;
    const size_t before = std::accumulate(sections.begin(), own, size_t{0});
    const size_t after = std::accumulate(own + 1, sections.end(), size_t{0});
    char* const section = At(out, before);
    RETURN_IF_ERROR(InHost(local_->AllGather(
        in, section, byte_counts.subspan(layout_.members().front(), layout_.members().size()),
        options)));
    if (IsInColumn(0)) RETURN_IF_ERROR(column_->AllGather(section, out, sections, options));
    RETURN_IF_ERROR(InHost(local_->Broadcast(out, before, 0, options)));
    return InHost(local_->Broadcast(section + *own, after, 0, options));
  });
}

absl::Status HierarchicalCommunicator::Broadcast(void* buffer, size_t bytes, int root,
                                                 const CallOptions& options) {
  return Run("broadcast", [&]() -> absl::Status {
    for (size_t done = 0; done < bytes; done += kBroadcastChunkBytes) {
      RETURN_IF_ERROR(BroadcastChunk(At(buffer, done), std::min(kBroadcastChunkBytes, bytes - done),
                                     root, options));
    }
    return absl::OkStatus();
  });
}

// Across hosts within one column first, then within each host. If the root is in no column, because
// its host has more ranks than another one, it first broadcasts within its host, so that the host's
// rank in column 0 can send in its place.
absl::Status HierarchicalCommunicator::BroadcastChunk(void* buffer, size_t bytes, int root,
                                                      const CallOptions& options) {
  const HostLayout::Place from = layout_.PlaceOf(root);
  const bool ours = from.host == layout_.host;
  const bool direct = from.index < layout_.columns();  // whether the root is in a column
  const int column = direct ? from.index : 0;
  if (ours && !direct) {
    RETURN_IF_ERROR(InHost(local_->Broadcast(buffer, bytes, from.index, options)));
  }
  if (IsInColumn(column)) {
    RETURN_IF_ERROR(column_->Broadcast(buffer, bytes, from.host, options));
  }
  if (ours && !direct) return absl::OkStatus();
  return InHost(local_->Broadcast(buffer, bytes, column, options));
}

// Two steps: exchanges with the ranks of other hosts over the mesh, then with those of the own
// host. The latter requires that the host's blocks are contiguous, so other layouts use the mesh
// alone.
absl::Status HierarchicalCommunicator::AllToAll(const void* in, absl::Span<const size_t> send_bytes,
                                                void* out, absl::Span<const size_t> receive_bytes,
                                                const CallOptions& options) {
  return Run("alltoall", [&]() -> absl::Status {
    if (!layout_.IsContiguous()) {
      return mesh_->AllToAll(in, send_bytes, out, receive_bytes, options);
    }
    const size_t first = layout_.members().front(), ranks = layout_.members().size();
    std::vector<Block> send = LayOut(send_bytes, 1), receive = LayOut(receive_bytes, 1);
    const size_t from = send[first].offset, to = receive[first].offset;
    for (const int rank : layout_.members()) send[rank].bytes = receive[rank].bytes = 0;
    RETURN_IF_ERROR(mesh_->ExchangeBlocks(in, send, out, receive, options));
    return InHost(local_->AllToAll(At(in, from), send_bytes.subspan(first, ranks), At(out, to),
                                   receive_bytes.subspan(first, ranks), options));
  });
}

absl::Status HierarchicalCommunicator::ReduceScatter(const void* in, void* out,
                                                     absl::Span<const size_t> counts, DataType type,
                                                     ReduceOp op, const CallOptions& options) {
  return Run("reducescatter", [&]() -> absl::Status {
    if (!options_.allreduce || !layout_.HasEqualHosts()) {
      return mesh_->ReduceScatter(in, out, counts, type, op, options);
    }
    const std::vector<Block> blocks = LayOut(counts, SizeOf(type));
    const size_t largest = *std::max_element(counts.begin(), counts.end());
    const size_t slice = std::max<size_t>(kPartBytes / SizeOf(type) / layout_.hosts.size(), 1);
    const Reduction reduction = {type, op, layout_.columns()};
    for (size_t done = 0; done < largest; done += slice) {
      RETURN_IF_ERROR(ReduceSlices({in, out, blocks}, done, slice, reduction, options));
    }
    return absl::OkStatus();
  });
}

// Reduces the same range of all ranks' blocks. Two steps: reduce-scatter within the host, so that
// rank j has the host's sum of the slices of column j's ranks; reduce-scatter of these in column j.
// The slices are packed column by column for this, in a buffer that stays in the caches.
absl::Status HierarchicalCommunicator::ReduceSlices(const Scattering& scattering, size_t first,
                                                    size_t count, const Reduction& reduction,
                                                    const CallOptions& options) {
  const size_t unit = SizeOf(reduction.type);
  const auto slice_of = [&](int rank) {
    const size_t all = scattering.blocks[rank].bytes / unit;
    return std::min(count, all - std::min(first, all));
  };
  std::vector<size_t> shares, own;
  packed_.clear();
  for (int j = 0; j < reduction.columns; ++j) {
    size_t share = 0;
    for (const int rank : layout_.Column(j)) {
      const size_t slice = slice_of(rank);
      const char* const source = At(scattering.in, scattering.blocks[rank].offset + first * unit);
      packed_.insert(packed_.end(), source, source + slice * unit);
      share += slice;
      if (j == layout_.index) own.push_back(slice);
    }
    shares.push_back(share);
  }
  sums_.resize(shares[layout_.index] * unit);
  RETURN_IF_ERROR(InHost(local_->ReduceScatter(packed_.data(), sums_.data(), shares, reduction.type,
                                               reduction.op, options)));
  if (sums_.empty()) return absl::OkStatus();
  return column_->ReduceScatter(sums_.data(), At(scattering.out, first * unit), own, reduction.type,
                                reduction.op, options);
}

absl::Status HierarchicalCommunicator::SendReceive(int peer, const void* in, void* out,
                                                   size_t bytes, const CallOptions& options) {
  return Run("send-receive", [&]() -> absl::Status {
    const HostLayout::Place place = layout_.PlaceOf(peer);
    if (place.host != layout_.host) return mesh_->SendReceive(peer, in, out, bytes, options);
    return InHost(local_->SendReceive(place.index, in, out, bytes, options));
  });
}

absl::Status HierarchicalCommunicator::Barrier(const CallOptions& options) {
  // A barrier across hosts between two within the host: the first one ensures that all ranks of the
  // host have entered before their first rank reports that, the second one releases them.
  return Run("barrier", [&]() -> absl::Status {
    RETURN_IF_ERROR(InHost(local_->Barrier(options)));
    if (IsInColumn(0)) RETURN_IF_ERROR(column_->Barrier(options));
    return InHost(local_->Barrier(options));
  });
}

}  // namespace hvd::collectives::hierarchical
