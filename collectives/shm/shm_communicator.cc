#include "collectives/shm/shm_communicator.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "collectives/rank_text.h"
#include "collectives/shm/core_distance.h"
#include "collectives/shm/sizes.h"

namespace hvd::collectives::shm {
namespace {

size_t RoundUp(size_t size, size_t unit) { return (size + unit - 1) / unit * unit; }

}  // namespace

ShmCommunicator::ShmCommunicator(Epoch epoch, std::unique_ptr<ShmLinks> links, ShmWriting writing)
    : epoch_(epoch),
      links_(std::move(links)),
      writing_(writing),
      write_(writing == ShmWriting::kStreaming ? StreamingCopy : PlainCopy),
      mailbox_(*links_),
      small_(*links_),
      ring_(*links_) {}

std::string ShmCommunicator::ToString() const { return RankText("shm", rank(), size(), epoch_); }

absl::Status ShmCommunicator::Run(absl::string_view operation, const CallOptions& options,
                                  absl::FunctionRef<absl::Status(absl::Duration)> body) {
  ++calls_;
  absl::Status status = links_->Check();
  if (status.ok()) status = body(options.timeout);
  if (status.ok() || absl::IsAborted(status)) return status;
  return absl::Status(status.code(), absl::StrCat(operation, " number ", calls_, " (", ToString(),
                                                  "): ", status.message()));
}

void ShmCommunicator::Abort(absl::string_view reason) {
  links_->Break(absl::AbortedError(reason), rank());
}

absl::Status ShmCommunicator::ChooseWriting(size_t bytes, absl::Duration timeout) {
  constexpr size_t kProbeInterval = size_t{64} << 20;
  if (writing_ != ShmWriting::kProbe || size() == 1) return absl::OkStatus();
  if (bytes < bytes_until_probe_) {
    bytes_until_probe_ -= bytes;
    return absl::OkStatus();
  }
  bytes_until_probe_ = kProbeInterval;
  ASSIGN_OR_RETURN(const absl::Duration own, MeasureRoundTrip(*links_, timeout));
  // The ranks agree on the slowest pair's time.
  ASSIGN_OR_RETURN(const size_t nanoseconds,
                   Largest(static_cast<size_t>(absl::ToInt64Nanoseconds(own)), timeout));
  const bool far = AreFarApart(absl::Nanoseconds(nanoseconds));
  write_ = far ? StreamingCopy : PlainCopy;
  return absl::OkStatus();
}

absl::StatusOr<size_t> ShmCommunicator::Largest(size_t value, absl::Duration timeout) {
  memcpy(small_.Prepare(sizeof(value)), &value, sizeof(value));
  RETURN_IF_ERROR(small_.Exchange(timeout));
  for (int peer = 0; peer < size(); ++peer) {
    size_t other = 0;
    memcpy(&other, small_.Of(peer, sizeof(other)), sizeof(other));
    value = std::max(value, other);
  }
  return value;
}

size_t ShmCommunicator::StepBytes(size_t bytes) const {
  // At least two steps unless the part is small, so that ranks work on different blocks at once.
  constexpr size_t kSteps = 2, kSmallestStep = 8 << 10;
  return std::min(ChunkBytes(), RoundUp(std::max(bytes / kSteps, kSmallestStep), segment::kApart));
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
  return Run("AllReduce", options, [&](absl::Duration timeout) {
    const PieceList list(pieces, SizeOf(type));
    const Reducer reducer(type, op);
    // All ranks have the same sizes, so they choose the same way without a message.
    return list.count() * SizeOf(type) <= segment::kSmallBytes
               ? ReduceSmall(list, reducer, finish, timeout)
               : ReduceLarge(list, reducer, finish, timeout);
  });
}

absl::Status ShmCommunicator::ReduceSmall(const PieceList& pieces, const Reducer& reducer,
                                          FinishFunction finish, absl::Duration timeout) {
  const size_t unit = pieces.element_bytes(), bytes = pieces.count() * unit;
  char* const own = small_.Prepare(bytes);
  pieces.ForEach(0, pieces.count(), [&](const char* in, char*, size_t offset, size_t count) {
    WriteSmall(own + offset, in, count * unit);
  });
  RETURN_IF_ERROR(small_.Exchange(timeout));
  Sources sources(size());
  pieces.ForEach(0, pieces.count(), [&](const char*, char* out, size_t offset, size_t count) {
    for (int peer = 0; peer < size(); ++peer) sources[peer] = small_.Of(peer, bytes) + offset;
    if (size() > 1) {
      reducer(out, sources, count);
    } else {
      memcpy(out, sources[0], count * unit);
    }
    finish(out, count);
  });
  return absl::OkStatus();
}

// Reduce-scatter and all-gather in one pipeline. The elements are divided into one part per rank,
// its owner; a block takes `step` elements of every part. Contribute: write the others' parts of
// `in` to this rank's chunks for them. Reduce: combine the own part of `in` with the peers' chunks,
// write the result to `out` and to this rank's own chunk. Drain: copy the other owners' results to
// `out`.
//
// A piece's `out` may equal its `in`: in the other owners' parts of a block, `out` is written by
// the drain stage only, after this rank has contributed that block.
absl::Status ShmCommunicator::ReduceLarge(const PieceList& pieces, const Reducer& reducer,
                                          FinishFunction finish, absl::Duration timeout) {
  const size_t unit = pieces.element_bytes(), ranks = size(), me = rank();
  RETURN_IF_ERROR(ChooseWriting(pieces.count() * unit, timeout));
  const CopyFunction take = ReaderFor(pieces.count() * unit);
  const size_t part = (pieces.count() + ranks - 1) / ranks;  // elements per owner
  const size_t step = StepBytes(part * unit) / unit;
  // Visits the elements that `owner` reduces in block `block`.
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
      ReduceWithPeers(reducer, place, offset, in, out, count * unit, count);
      finish(out, count);
      // After `finish`, so that the peers drain finished values, bitwise equal on all ranks.
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
  return ring_.ContributeReduceDrain(BlocksFor(part, step), contribute, reduce, drain, timeout);
}

void ShmCommunicator::ReduceWithPeers(const Reducer& reducer, uint64_t place, size_t offset,
                                      const char* in, char* out, size_t bytes, size_t count) const {
  if (size() == 1) {
    memmove(out, in, bytes);
    return;
  }
  Sources sources = {in};  // the first source, since only that may equal `out`
  for (int peer = 0; peer < size(); ++peer) {
    if (peer != rank()) sources.push_back(Chunk(peer, place, rank()) + offset);
  }
  reducer(out, sources, count);
}

absl::Status ShmCommunicator::ReduceScatter(const void* in, void* out,
                                            absl::Span<const size_t> counts, DataType type,
                                            ReduceOp op, const CallOptions& options) {
  return Run("ReduceScatter", options, [&](absl::Duration timeout) -> absl::Status {
    const size_t unit = SizeOf(type), me = rank(), ranks = size();
    const Reducer reducer(type, op);
    const std::vector<size_t> offsets = Offsets(counts);
    const char* const source = static_cast<const char*>(in);
    char* const target = static_cast<char*>(out);
    RETURN_IF_ERROR(ChooseWriting(offsets.back() * unit, timeout));
    const size_t step = StepBytes(LargestOf(counts) * unit) / unit;
    // Calls visit(first element, count) for the elements that `owner` reduces in block `block`.
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
        ReduceWithPeers(reducer, place, 0, source + (offsets[me] + begin) * unit,
                        target + begin * unit, count * unit, count);
      });
    };
    // No rank needs another one's results, so the reduction runs in place of the drain stage.
    return ring_.ContributeDrain(BlocksFor(LargestOf(counts), step), contribute, reduce, timeout);
  });
}

}  // namespace hvd::collectives::shm
