// The operations of ShmCommunicator that only move data.
#include <algorithm>
#include <cstring>
#include <vector>

#include "base/status_macros.h"
#include "collectives/shm/byte_pipe.h"
#include "collectives/shm/shm_communicator.h"
#include "collectives/shm/sizes.h"

namespace hvd::collectives::shm {

absl::Status ShmCommunicator::AllGather(const void* in, void* out,
                                        absl::Span<const size_t> byte_counts,
                                        const CallOptions& options) {
  return Run("AllGather", options, [&](absl::Duration timeout) -> absl::Status {
    const std::vector<size_t> offsets = Offsets(byte_counts);
    char* const target = static_cast<char*>(out);
    char* const own = target + offsets[rank()];
    if (byte_counts[rank()] > 0 && own != in) memmove(own, in, byte_counts[rank()]);
    // By the largest, not by the own size: all ranks must choose the same way.
    if (LargestOf(byte_counts) > segment::kSmallBytes)
      return GatherLarge(own, target, byte_counts, timeout);
    WriteSmall(small_.Prepare(byte_counts[rank()]), own, byte_counts[rank()]);
    RETURN_IF_ERROR(small_.Exchange(timeout));
    for (int peer = 0; peer < size(); ++peer) {
      if (peer == rank()) continue;
      PlainCopy(target + offsets[peer], small_.Of(peer, byte_counts[peer]), byte_counts[peer]);
    }
    return absl::OkStatus();
  });
}

absl::Status ShmCommunicator::GatherLarge(const char* in, char* out,
                                          absl::Span<const size_t> byte_counts,
                                          absl::Duration timeout) {
  const std::vector<size_t> offsets = Offsets(byte_counts);
  RETURN_IF_ERROR(ChooseWriting(offsets.back(), timeout));
  const CopyFunction take = ReaderFor(offsets.back());
  const size_t step = StepBytes(LargestOf(byte_counts));
  const auto for_part = [&](int rank, size_t block, auto&& visit) {
    const size_t begin = std::min(block * step, byte_counts[rank]);
    const size_t bytes = std::min(step, byte_counts[rank] - begin);
    if (bytes > 0) visit(begin, bytes);
  };
  const auto contribute = [&](size_t block, uint64_t place) {
    for_part(rank(), block, [&](size_t begin, size_t bytes) {
      write_(Chunk(rank(), place, 0), in + begin, bytes);
    });
  };
  const auto drain = [&](size_t block, uint64_t place) {
    for (int peer = 0; peer < size(); ++peer) {
      if (peer == rank()) continue;
      for_part(peer, block, [&](size_t begin, size_t bytes) {
        take(out + offsets[peer] + begin, Chunk(peer, place, 0), bytes);
      });
    }
  };
  return ring_.ContributeDrain(BlocksFor(LargestOf(byte_counts), step), contribute, drain, timeout);
}

absl::Status ShmCommunicator::Broadcast(void* buffer, size_t bytes, int root,
                                        const CallOptions& options) {
  const Stretch whole = {buffer, bytes};
  return BroadcastStretches(
      absl::MakeConstSpan(&whole, 1), root, [](const void*, size_t) {}, options);
}

absl::Status ShmCommunicator::BroadcastStretches(absl::Span<const Stretch> stretches, int root,
                                                 ObserveFunction observe,
                                                 const CallOptions& options) {
  return Run("Broadcast", options, [&](absl::Duration timeout) {
    const StretchList list(stretches);
    return list.bytes() <= segment::kSmallBytes ? BroadcastSmall(list, root, observe, timeout)
                                                : BroadcastLarge(list, root, observe, timeout);
  });
}

absl::Status ShmCommunicator::BroadcastSmall(const StretchList& list, int root,
                                             ObserveFunction observe, absl::Duration timeout) {
  const bool is_root = rank() == root;
  const size_t bytes = list.bytes();
  char* const own = small_.Prepare(bytes);
  if (is_root) {
    list.ForEach(0, bytes, [&](const char* data, size_t offset, size_t count) {
      WriteSmall(own + offset, data, count);
    });
  }
  RETURN_IF_ERROR(small_.Exchange(timeout));
  list.ForEach(0, bytes, [&](char* data, size_t offset, size_t count) {
    if (!is_root) PlainCopy(data, small_.Of(root, bytes) + offset, count);
    observe(data, count);
  });
  return absl::OkStatus();
}

absl::Status ShmCommunicator::BroadcastLarge(const StretchList& list, int root,
                                             ObserveFunction observe, absl::Duration timeout) {
  const bool is_root = rank() == root;
  const size_t bytes = list.bytes();
  RETURN_IF_ERROR(ChooseWriting(bytes, timeout));
  const CopyFunction take = ReaderFor(bytes);
  const size_t step = StepBytes(bytes);
  const auto for_each = [&](size_t block, auto&& visit) {
    list.ForEach(block * step, std::min((block + 1) * step, bytes), visit);
  };
  const auto contribute = [&](size_t block, uint64_t place) {
    if (!is_root) return;
    char* const chunk = Chunk(root, place, 0);
    for_each(block, [&](const char* data, size_t offset, size_t count) {
      write_(chunk + offset, data, count);
      observe(data, count);
    });
  };
  const auto drain = [&](size_t block, uint64_t place) {
    if (is_root) return;
    const char* const chunk = Chunk(root, place, 0);
    for_each(block, [&](char* data, size_t offset, size_t count) {
      take(data, chunk + offset, count);
      // From the chunk, which the copy has just brought into the cache, while it may have written
      // `data` past it.
      observe(chunk + offset, count);
    });
  };
  return ring_.ContributeDrain(BlocksFor(bytes, step), contribute, drain, timeout);
}

absl::Status ShmCommunicator::AllToAll(const void* in, absl::Span<const size_t> send_bytes,
                                       void* out, absl::Span<const size_t> receive_bytes,
                                       const CallOptions& options) {
  return Run("AllToAll", options, [&](absl::Duration timeout) -> absl::Status {
    const char* const source = static_cast<const char*>(in);
    char* const target = static_cast<char*>(out);
    // All ranks must run the same number of steps, but a rank knows only the sizes of the blocks
    // that it sends and receives. So they agree on the largest block of all ranks.
    ASSIGN_OR_RETURN(const size_t largest, Largest(LargestOf(send_bytes), timeout));
    if (largest == 0) return absl::OkStatus();
    if (largest * size() > segment::kSmallBytes) {
      return AllToAllLarge(source, send_bytes, target, receive_bytes, largest, timeout);
    }
    const std::vector<size_t> from = Offsets(send_bytes), to = Offsets(receive_bytes);
    const size_t bytes = largest * size();
    char* const own = small_.Prepare(bytes);
    for (int peer = 0; peer < size(); ++peer) {
      WriteSmall(own + peer * largest, source + from[peer], send_bytes[peer]);
    }
    RETURN_IF_ERROR(small_.Exchange(timeout));
    for (int peer = 0; peer < size(); ++peer) {
      PlainCopy(target + to[peer], small_.Of(peer, bytes) + rank() * largest, receive_bytes[peer]);
    }
    return absl::OkStatus();
  });
}

absl::Status ShmCommunicator::AllToAllLarge(const char* in, absl::Span<const size_t> send,
                                            char* out, absl::Span<const size_t> receive,
                                            size_t largest, absl::Duration timeout) {
  const std::vector<size_t> from = Offsets(send), to = Offsets(receive);
  RETURN_IF_ERROR(ChooseWriting(largest * size(), timeout));
  const CopyFunction take = ReaderFor(largest * size());
  const size_t step = StepBytes(largest);
  PlainCopy(out + to[rank()], in + from[rank()], send[rank()]);
  const auto contribute = [&](size_t block, uint64_t place) {
    for (int peer = 0; peer < size(); ++peer) {
      const size_t begin = std::min(block * step, send[peer]);
      if (peer == rank()) continue;
      write_(Chunk(rank(), place, peer), in + from[peer] + begin,
             std::min(step, send[peer] - begin));
    }
  };
  const auto drain = [&](size_t block, uint64_t place) {
    for (int peer = 0; peer < size(); ++peer) {
      const size_t begin = std::min(block * step, receive[peer]);
      if (peer == rank()) continue;
      take(out + to[peer] + begin, Chunk(peer, place, rank()),
           std::min(step, receive[peer] - begin));
    }
  };
  return ring_.ContributeDrain(BlocksFor(largest, step), contribute, drain, timeout);
}

absl::Status ShmCommunicator::SendReceive(int peer, const void* in, void* out, size_t bytes,
                                          const CallOptions& options) {
  return Run("SendReceive", options, [&](absl::Duration timeout) -> absl::Status {
    segment::BytePipe& there = links_->segment().pipe(segment::PipeKind::kData, rank(), peer);
    segment::BytePipe& here = links_->segment().pipe(segment::PipeKind::kData, peer, rank());
    const char* const source = static_cast<const char*>(in);
    char* const target = static_cast<char*>(out);
    // Both directions advance in the same loop: with more data than the pipes hold, two ranks that
    // first sent everything would wait for each other. One notification covers the bytes written to
    // `there` and the room made in `here`.
    size_t sent = 0, received = 0;
    const auto missing = [&] {
      const bool can_go_on =
          (sent < bytes && HasRoom(there)) || (received < bytes && HasData(here));
      return can_go_on ? -1 : peer;
    };
    while (sent < bytes || received < bytes) {
      sent += WriteToPipe(there, source + sent, bytes - sent);
      received += ReadFromPipe(here, target + received, bytes - received);
      links_->Notify(peer);
      if (sent == bytes && received == bytes) break;
      RETURN_IF_ERROR(links_->Await(missing, timeout));
    }
    return absl::OkStatus();
  });
}

absl::Status ShmCommunicator::Barrier(const CallOptions& options) {
  return Run("Barrier", options, [&](absl::Duration timeout) {
    small_.Prepare(0);
    return small_.Exchange(timeout);
  });
}

}  // namespace hvd::collectives::shm
