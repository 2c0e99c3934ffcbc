#include "collectives/links/links_communicator.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "collectives/argument_checks.h"
#include "collectives/unreached_rank.h"

namespace hvd::collectives::links {
namespace {

// Up to this size, counted over all data that a rank receives, an all-reduce sends every rank's
// data to all others: one latency instead of two.
constexpr size_t kOneShotBytes = 64 * 1024;
// Up to this size all pairs exchange blocks at once. Beyond, the ring is faster, because sending
// and reducing overlap.
constexpr size_t kDirectBytes = 512 * 1024;
// In large groups the size-1 steps of a ring cost more than the additional data of doubling or a
// tree, up to a limit that grows with the number of ranks.
constexpr size_t kDoublingBytesPerRank = 8 * 1024;
constexpr size_t kTreeBytesPerRank = 64 * 1024;

size_t Total(const std::vector<Block>& blocks) {
  return blocks.back().offset + blocks.back().bytes;
}

}  // namespace

LinksCommunicator::LinksCommunicator(Epoch epoch, Peers peers, int most_direct)
    : epoch_(epoch), peers_(std::move(peers)), most_direct_(most_direct) {}

bool LinksCommunicator::Doubles(size_t bytes) const {
  return !IsSmall() && bytes <= std::max(kDirectBytes, size() * kDoublingBytesPerRank);
}

std::string LinksCommunicator::ToString() const {
  const Links& links = *peers_.links();
  const std::string among =
      size() == links.size() ? ""
                             : absl::StrCat(" among ranks ", absl::StrJoin(peers_.ranks(), ", "));
  return absl::StrCat(links.name(), ", rank ", links.rank(), " of ", links.size(), among,
                      ", epoch ", epoch_.value());
}

absl::Status LinksCommunicator::Run(absl::string_view operation, const CallOptions& options,
                                    absl::FunctionRef<absl::Status(const Phase&)> body) {
  ++calls_;
  Links& links = *peers_.links();
  absl::Status status = links.status();
  if (status.ok()) {
    status = body(Phase{peers_, scratch_, options.timeout});
    if (status.ok()) return status;
    // Other ranks must not wait for this one. If Abort() was called meanwhile, its reason takes
    // precedence over the error that it caused.
    links.Break(status, links.rank());
    if (absl::IsAborted(links.status())) status = links.status();
  }
  if (absl::IsAborted(status)) return status;
  return WithText(status, absl::StrCat(operation, " (call ", calls_, "; ", ToString(),
                                       "): ", status.message()));
}

absl::Status LinksCommunicator::AllReduce(const void* in, void* out, size_t count, DataType type,
                                          ReduceOp op, const CallOptions& options) {
  return Run("allreduce", options, [&](const Phase& phase) -> absl::Status {
    const ElementReduction reduction = {GetReduceFunction(type, op), SizeOf(type)};
    const size_t bytes = count * reduction.element_bytes;
    if (bytes == 0) return absl::OkStatus();
    if (Doubles(bytes)) return DoublingAllReduce(phase, in, out, bytes, reduction);
    if (IsSmall() && bytes * (size() - 1) <= kOneShotBytes) {
      return DirectAllReduce(phase, in, out, bytes, reduction);
    }
    const std::vector<Block> blocks = LayOutEvenly(count, reduction.element_bytes, size());
    if (!IsSmall() || bytes > kDirectBytes) {
      RETURN_IF_ERROR(RingReduceScatter(phase, in, out, /*whole_out=*/true, blocks, reduction));
      return RingAllGather(phase, out, blocks);
    }
    void* own = static_cast<char*>(out) + blocks[rank()].offset;
    RETURN_IF_ERROR(DirectReduceScatter(phase, in, own, blocks, reduction));
    return DirectAllGather(phase, out, blocks);
  });
}

absl::Status LinksCommunicator::AllGather(const void* in, void* out,
                                          absl::Span<const size_t> byte_counts,
                                          const CallOptions& options) {
  return Run("allgather", options, [&](const Phase& phase) -> absl::Status {
    RETURN_IF_ERROR(CheckCounts(byte_counts, size()));
    const std::vector<Block> blocks = LayOut(byte_counts, 1);
    void* own = static_cast<char*>(out) + blocks[rank()].offset;
    if (own != in && blocks[rank()].bytes > 0) std::memcpy(own, in, blocks[rank()].bytes);
    if (Doubles(Total(blocks))) return DoublingAllGather(phase, out, blocks);
    if (!IsSmall() || Total(blocks) > kDirectBytes) return RingAllGather(phase, out, blocks);
    return DirectAllGather(phase, out, blocks);
  });
}

absl::Status LinksCommunicator::Broadcast(void* buffer, size_t bytes, int root,
                                          const CallOptions& options) {
  return Run("broadcast", options, [&](const Phase& phase) -> absl::Status {
    RETURN_IF_ERROR(CheckIsRank(root, size()));
    if (bytes == 0) return absl::OkStatus();
    if (IsSmall() && bytes * (size() - 1) <= kDirectBytes) {
      return DirectBroadcast(phase, buffer, bytes, root);
    }
    if (!IsSmall() && bytes <= size() * kTreeBytesPerRank) {
      return TreeBroadcast(phase, buffer, bytes, root);
    }
    return ChainBroadcast(phase, buffer, bytes, root);
  });
}

absl::Status LinksCommunicator::AllToAll(const void* in, absl::Span<const size_t> send_bytes,
                                         void* out, absl::Span<const size_t> receive_bytes,
                                         const CallOptions& options) {
  return Run("alltoall", options, [&](const Phase& phase) -> absl::Status {
    RETURN_IF_ERROR(CheckCounts(send_bytes, size()));
    RETURN_IF_ERROR(CheckCounts(receive_bytes, size()));
    return DirectAllToAll(phase, in, LayOut(send_bytes, 1), out, LayOut(receive_bytes, 1));
  });
}

absl::Status LinksCommunicator::ExchangeBlocks(const void* in, const std::vector<Block>& send,
                                               void* out, const std::vector<Block>& receive,
                                               const CallOptions& options) {
  return Run("alltoall", options,
             [&](const Phase& phase) { return DirectAllToAll(phase, in, send, out, receive); });
}

absl::Status LinksCommunicator::ReduceScatter(const void* in, void* out,
                                              absl::Span<const size_t> counts, DataType type,
                                              ReduceOp op, const CallOptions& options) {
  return Run("reducescatter", options, [&](const Phase& phase) -> absl::Status {
    RETURN_IF_ERROR(CheckCounts(counts, size()));
    const ElementReduction reduction = {GetReduceFunction(type, op), SizeOf(type)};
    const std::vector<Block> blocks = LayOut(counts, reduction.element_bytes);
    if (Doubles(Total(blocks))) return DoublingReduceScatter(phase, in, out, blocks, reduction);
    if (!IsSmall() || Total(blocks) > kDirectBytes) {
      return RingReduceScatter(phase, in, out, /*whole_out=*/false, blocks, reduction);
    }
    return DirectReduceScatter(phase, in, out, blocks, reduction);
  });
}

absl::Status LinksCommunicator::SendReceive(int peer, const void* in, void* out, size_t bytes,
                                            const CallOptions& options) {
  return Run("send-receive", options, [&](const Phase& phase) -> absl::Status {
    RETURN_IF_ERROR(CheckIsRank(peer, size()));
    if (peer == rank()) return absl::InternalError("a rank can't exchange with itself");
    if (bytes == 0) return absl::OkStatus();
    return Exchange(phase, peer, in, out, bytes);
  });
}

absl::Status LinksCommunicator::Barrier(const CallOptions& options) {
  return Run("barrier", options, [](const Phase& phase) { return DisseminationBarrier(phase); });
}

void LinksCommunicator::Abort(absl::string_view reason) {
  peers_.links()->Break(absl::AbortedError(reason), peers_.links()->rank());
}

std::unique_ptr<Communicator> LinksCommunicator::Subset(const std::vector<int>& ranks) {
  std::vector<int> of_links;
  of_links.reserve(ranks.size());
  for (const int rank : ranks) of_links.push_back(peers_.ranks()[rank]);
  return std::make_unique<LinksCommunicator>(epoch_, Peers(peers_.links(), std::move(of_links)),
                                             most_direct_);
}

void LinksCommunicator::OnBroken(std::function<void(const absl::Status&)> listener) {
  peers_.links()->OnBroken(std::move(listener));
}

}  // namespace hvd::collectives::links
