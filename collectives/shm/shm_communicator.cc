#include "collectives/shm/shm_communicator.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "collectives/shm/byte_pipe.h"
#include "collectives/shm/core_distance.h"

namespace hvd {
namespace {

size_t RoundUp(size_t size, size_t unit) { return (size + unit - 1) / unit * unit; }

size_t BlocksFor(size_t bytes, size_t step) { return (bytes + step - 1) / step; }

// Where each rank's bytes begin if they lie one behind the other; the end of all comes last.
std::vector<size_t> Offsets(absl::Span<const size_t> sizes) {
  std::vector<size_t> offsets = {0};
  for (const size_t size : sizes) offsets.push_back(offsets.back() + size);
  return offsets;
}

// Slots take turns soon, so the readers' caches still hold them: what is more than a few lines goes
// past the caches.
void WriteSmall(char* to, const char* from, size_t bytes) {
  constexpr size_t kFewLines = 1024;
  (bytes > kFewLines ? StreamingCopy : PlainCopy)(to, from, bytes);
}

// What is larger than the caches need not go through them, and need not be read before it is
// overwritten.
CopyFunction ReaderFor(size_t bytes) {
  constexpr size_t kLarge = size_t{4} << 20;
  return bytes >= kLarge ? StreamingCopy : PlainCopy;
}

size_t LargestOf(absl::Span<const size_t> sizes) {
  return sizes.empty() ? 0 : *std::max_element(sizes.begin(), sizes.end());
}

}  // namespace

ShmCommunicator::ShmCommunicator(Epoch epoch, std::unique_ptr<ShmLinks> links, ShmWriting writing)
    : epoch_(epoch),
      links_(std::move(links)),
      writing_(writing),
      write_(writing == ShmWriting::kStreaming ? StreamingCopy : PlainCopy),
      mailbox_(*links_),
      small_(*links_),
      ring_(*links_) {}

std::string ShmCommunicator::ToString() const {
  return absl::StrCat("shm, rank ", rank(), " of ", size(), ", epoch ", epoch_.value());
}

absl::Status ShmCommunicator::Run(absl::string_view operation, const CallOptions& options,
                                  absl::FunctionRef<absl::Status(absl::Time)> body) {
  ++calls_;
  absl::Status status = links_->Check();
  if (status.ok()) status = body(Clock::Real().Now() + options.timeout);
  if (status.ok() || absl::IsAborted(status)) return status;
  return absl::Status(status.code(), absl::StrCat(operation, " number ", calls_, " (", ToString(),
                                                  "): ", status.message()));
}

void ShmCommunicator::Abort(absl::string_view reason) {
  links_->Break(absl::AbortedError(reason), rank());
}

absl::Status ShmCommunicator::ChooseWriting(size_t bytes, absl::Time deadline) {
  constexpr size_t kProbeInterval = size_t{64} << 20;
  if (writing_ != ShmWriting::kProbe || size() == 1) return absl::OkStatus();
  if (bytes < bytes_until_probe_) {
    bytes_until_probe_ -= bytes;
    return absl::OkStatus();
  }
  bytes_until_probe_ = kProbeInterval;
  ASSIGN_OR_RETURN(const absl::Duration own, MeasureRoundTrip(*links_, deadline));
  ASSIGN_OR_RETURN(const size_t nanoseconds,
                   Largest(static_cast<size_t>(absl::ToInt64Nanoseconds(own)), deadline));
  const bool far = AreFarApart(absl::Nanoseconds(nanoseconds));
  write_ = far ? StreamingCopy : PlainCopy;
  return absl::OkStatus();
}

size_t ShmCommunicator::StepBytes(size_t bytes) const {
  // In two steps even if it is not much, so that the ranks work at the same time.
  constexpr size_t kSteps = 2, kSmallestStep = 8 << 10;
  return std::min(ChunkBytes(), RoundUp(std::max(bytes / kSteps, kSmallestStep), kApart));
}

absl::Status ShmCommunicator::AllReduce(const void* in, void* out, size_t count, DataType type,
                                        ReduceOp op, const CallOptions& options) {
  const Piece piece = {in, out, count};
  return AllReducePieces(
      absl::MakeConstSpan(&piece, 1), type, op, [](void*, size_t) {}, options);
}

absl::Status ShmCommunicator::AllReducePieces(absl::Span<const Piece> pieces, DataType type,
                                              ReduceOp op, FinishFunction finish,
                                              const CallOptions& options) {
  return Run("AllReduce", options, [&](absl::Time deadline) {
    const PieceList list(pieces, SizeOf(type));
    const ReduceFunction function = GetReduceFunction(type, op);
    return list.count() * SizeOf(type) <= kSmallBytes
               ? ReduceSmall(list, function, finish, deadline)
               : ReduceLarge(list, function, finish, deadline);
  });
}

absl::Status ShmCommunicator::ReduceSmall(const PieceList& pieces, ReduceFunction function,
                                          FinishFunction finish, absl::Time deadline) {
  const size_t unit = pieces.element_bytes(), bytes = pieces.count() * unit;
  char* const own = small_.Prepare(bytes);
  pieces.ForEach(0, pieces.count(), [&](const char* in, char*, size_t offset, size_t count) {
    WriteSmall(own + offset, in, count * unit);
  });
  RETURN_IF_ERROR(small_.Exchange(deadline));
  pieces.ForEach(0, pieces.count(), [&](const char*, char* out, size_t offset, size_t count) {
    const char* sum = small_.Of(0, bytes) + offset;
    for (int peer = 1; peer < size(); ++peer) {
      function(out, sum, small_.Of(peer, bytes) + offset, count);
      sum = out;
    }
    if (size() == 1) memcpy(out, sum, count * unit);
    finish(out, count);
  });
  return absl::OkStatus();
}

absl::Status ShmCommunicator::ReduceLarge(const PieceList& pieces, ReduceFunction function,
                                          FinishFunction finish, absl::Time deadline) {
  const size_t unit = pieces.element_bytes(), ranks = size(), me = rank();
  RETURN_IF_ERROR(ChooseWriting(pieces.count() * unit, deadline));
  const CopyFunction take = ReaderFor(pieces.count() * unit);
  const size_t part = (pieces.count() + ranks - 1) / ranks;  // of each rank, in elements
  const size_t step = StepBytes(part * unit) / unit;
  // What `owner` reduces in block `block`.
  const auto for_each = [&](size_t owner, size_t block, auto&& visit) {
    const size_t end = std::min((owner + 1) * part, pieces.count());
    const size_t begin = owner * part + block * step;
    pieces.ForEach(begin, std::min(begin + step, end), visit);
  };
  const auto contribute = [&](size_t block, uint64_t place) {
    for (size_t owner = 0; owner < ranks; ++owner) {
      if (owner == me) continue;
      char* const chunk = Chunk(me, place, owner);
      for_each(owner, block, [&](const char* in, char*, size_t offset, size_t count) {
        write_(chunk + offset, in, count * unit);
      });
    }
  };
  const auto reduce = [&](size_t block, uint64_t place) {
    char* const result = Chunk(me, place, me);
    for_each(me, block, [&](const char* in, char* out, size_t offset, size_t count) {
      for (size_t peer = 0; peer < ranks; ++peer) {
        if (peer == me) continue;
        function(out, in, Chunk(peer, place, me) + offset, count);
        in = out;
      }
      if (ranks == 1) memmove(out, in, count * unit);
      finish(out, count);
      if (ranks > 1) write_(result + offset, out, count * unit);
    });
  };
  const auto drain = [&](size_t block, uint64_t place) {
    for (size_t owner = 0; owner < ranks; ++owner) {
      if (owner == me) continue;
      const char* const result = Chunk(owner, place, owner);
      for_each(owner, block, [&](const char*, char* out, size_t offset, size_t count) {
        take(out, result + offset, count * unit);
      });
    }
  };
  return ring_.ContributeReduceDrain(BlocksFor(part, step), contribute, reduce, drain, deadline);
}

absl::Status ShmCommunicator::ReduceScatter(const void* in, void* out,
                                            absl::Span<const size_t> counts, DataType type,
                                            ReduceOp op, const CallOptions& options) {
  return Run("ReduceScatter", options, [&](absl::Time deadline) -> absl::Status {
    const size_t unit = SizeOf(type), me = rank(), ranks = size();
    const ReduceFunction function = GetReduceFunction(type, op);
    const std::vector<size_t> offsets = Offsets(counts);
    const char* const source = static_cast<const char*>(in);
    char* const target = static_cast<char*>(out);
    RETURN_IF_ERROR(ChooseWriting(offsets.back() * unit, deadline));
    const size_t step = StepBytes(LargestOf(counts) * unit) / unit;
    // Calls visit(first element, count) for what `owner` reduces in block `block`.
    const auto for_part = [&](size_t owner, size_t block, auto&& visit) {
      const size_t begin = std::min(block * step, counts[owner]);
      const size_t count = std::min(step, counts[owner] - begin);
      if (count > 0) visit(begin, count);
    };
    const auto contribute = [&](size_t block, uint64_t place) {
      for (size_t owner = 0; owner < ranks; ++owner) {
        if (owner == me) continue;
        for_part(owner, block, [&](size_t begin, size_t count) {
          write_(Chunk(me, place, owner), source + (offsets[owner] + begin) * unit, count * unit);
        });
      }
    };
    const auto reduce = [&](size_t block, uint64_t place) {
      for_part(me, block, [&](size_t begin, size_t count) {
        const char* sum = source + (offsets[me] + begin) * unit;
        char* const result = target + begin * unit;
        for (size_t peer = 0; peer < ranks; ++peer) {
          if (peer == me) continue;
          function(result, sum, Chunk(peer, place, me), count);
          sum = result;
        }
        if (ranks == 1) memmove(result, sum, count * unit);
      });
    };
    return ring_.ContributeDrain(BlocksFor(LargestOf(counts), step), contribute, reduce, deadline);
  });
}

absl::Status ShmCommunicator::AllGather(const void* in, void* out,
                                        absl::Span<const size_t> byte_counts,
                                        const CallOptions& options) {
  return Run("AllGather", options, [&](absl::Time deadline) -> absl::Status {
    const std::vector<size_t> offsets = Offsets(byte_counts);
    char* const target = static_cast<char*>(out);
    char* const own = target + offsets[rank()];
    if (byte_counts[rank()] > 0 && own != in) memmove(own, in, byte_counts[rank()]);
    if (LargestOf(byte_counts) > kSmallBytes)
      return GatherLarge(own, target, byte_counts, deadline);
    WriteSmall(small_.Prepare(byte_counts[rank()]), own, byte_counts[rank()]);
    RETURN_IF_ERROR(small_.Exchange(deadline));
    for (int peer = 0; peer < size(); ++peer) {
      if (peer == rank()) continue;
      PlainCopy(target + offsets[peer], small_.Of(peer, byte_counts[peer]), byte_counts[peer]);
    }
    return absl::OkStatus();
  });
}

absl::Status ShmCommunicator::GatherLarge(const char* in, char* out,
                                          absl::Span<const size_t> byte_counts,
                                          absl::Time deadline) {
  const std::vector<size_t> offsets = Offsets(byte_counts);
  RETURN_IF_ERROR(ChooseWriting(offsets.back(), deadline));
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
  return ring_.ContributeDrain(BlocksFor(LargestOf(byte_counts), step), contribute, drain,
                               deadline);
}

absl::Status ShmCommunicator::Broadcast(void* buffer, size_t bytes, int root,
                                        const CallOptions& options) {
  return Run("Broadcast", options, [&](absl::Time deadline) -> absl::Status {
    const bool is_root = rank() == root;
    char* const data = static_cast<char*>(buffer);
    if (bytes <= kSmallBytes) {
      char* const own = small_.Prepare(bytes);
      if (is_root) WriteSmall(own, data, bytes);
      RETURN_IF_ERROR(small_.Exchange(deadline));
      if (!is_root) PlainCopy(data, small_.Of(root, bytes), bytes);
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(ChooseWriting(bytes, deadline));
    const CopyFunction take = ReaderFor(bytes);
    const size_t step = StepBytes(bytes);
    const auto size_of = [&](size_t block) { return std::min(step, bytes - block * step); };
    const auto contribute = [&](size_t block, uint64_t place) {
      if (is_root) write_(Chunk(root, place, 0), data + block * step, size_of(block));
    };
    const auto drain = [&](size_t block, uint64_t place) {
      if (!is_root) take(data + block * step, Chunk(root, place, 0), size_of(block));
    };
    return ring_.ContributeDrain(BlocksFor(bytes, step), contribute, drain, deadline);
  });
}

absl::StatusOr<size_t> ShmCommunicator::Largest(size_t value, absl::Time deadline) {
  memcpy(small_.Prepare(sizeof(value)), &value, sizeof(value));
  RETURN_IF_ERROR(small_.Exchange(deadline));
  for (int peer = 0; peer < size(); ++peer) {
    size_t other = 0;
    memcpy(&other, small_.Of(peer, sizeof(other)), sizeof(other));
    value = std::max(value, other);
  }
  return value;
}

absl::Status ShmCommunicator::AllToAll(const void* in, absl::Span<const size_t> send_bytes,
                                       void* out, absl::Span<const size_t> receive_bytes,
                                       const CallOptions& options) {
  return Run("AllToAll", options, [&](absl::Time deadline) -> absl::Status {
    const char* const source = static_cast<const char*>(in);
    char* const target = static_cast<char*>(out);
    // A rank knows its own blocks only, but the number of steps must be the same for all.
    ASSIGN_OR_RETURN(const size_t largest, Largest(LargestOf(send_bytes), deadline));
    if (largest == 0) return absl::OkStatus();
    if (largest * size() > kSmallBytes) {
      return AllToAllLarge(source, send_bytes, target, receive_bytes, largest, deadline);
    }
    const std::vector<size_t> from = Offsets(send_bytes), to = Offsets(receive_bytes);
    const size_t bytes = largest * size();
    char* const own = small_.Prepare(bytes);
    for (int peer = 0; peer < size(); ++peer) {
      WriteSmall(own + peer * largest, source + from[peer], send_bytes[peer]);
    }
    RETURN_IF_ERROR(small_.Exchange(deadline));
    for (int peer = 0; peer < size(); ++peer) {
      PlainCopy(target + to[peer], small_.Of(peer, bytes) + rank() * largest, receive_bytes[peer]);
    }
    return absl::OkStatus();
  });
}

absl::Status ShmCommunicator::AllToAllLarge(const char* in, absl::Span<const size_t> send,
                                            char* out, absl::Span<const size_t> receive,
                                            size_t largest, absl::Time deadline) {
  const std::vector<size_t> from = Offsets(send), to = Offsets(receive);
  RETURN_IF_ERROR(ChooseWriting(largest * size(), deadline));
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
  return ring_.ContributeDrain(BlocksFor(largest, step), contribute, drain, deadline);
}

absl::Status ShmCommunicator::SendReceive(int peer, const void* in, void* out, size_t bytes,
                                          const CallOptions& options) {
  return Run("SendReceive", options, [&](absl::Time deadline) -> absl::Status {
    BytePipe& there = links_->segment().pipe(PipeKind::kData, rank(), peer);
    BytePipe& here = links_->segment().pipe(PipeKind::kData, peer, rank());
    const char* const source = static_cast<const char*>(in);
    char* const target = static_cast<char*>(out);
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
      RETURN_IF_ERROR(links_->Await(missing, deadline));
    }
    return absl::OkStatus();
  });
}

absl::Status ShmCommunicator::Barrier(const CallOptions& options) {
  return Run("Barrier", options, [&](absl::Time deadline) {
    small_.Prepare(0);
    return small_.Exchange(deadline);
  });
}

}  // namespace hvd
