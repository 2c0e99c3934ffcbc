// The communicator over ShmLinks: SmallExchange moves small data in one step, BlockRing moves large
// data.
#ifndef COLLECTIVES_SHM_SHM_COMMUNICATOR_H_
#define COLLECTIVES_SHM_SHM_COMMUNICATOR_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "collectives/communicator.h"
#include "collectives/piece_list.h"
#include "collectives/reduce.h"
#include "collectives/shm/block_ring.h"
#include "collectives/shm/shm_backend.h"
#include "collectives/shm/shm_links.h"
#include "collectives/shm/shm_mailbox.h"
#include "collectives/shm/small_exchange.h"
#include "collectives/shm/streaming_copy.h"
#include "collectives/shm/stretch_list.h"

namespace hvd::collectives::shm {

// Thread-safety and errors as in Communicator.
class ShmCommunicator : public Communicator {
 public:
  ShmCommunicator(Epoch epoch, std::unique_ptr<ShmLinks> links, ShmWriting writing);

  int rank() const override { return links_->rank(); }
  int size() const override { return links_->size(); }
  std::string ToString() const override;
  Mailbox* mailbox() override { return &mailbox_; }
  std::optional<SharedMemory> shared_memory() override {
    return SharedMemory{links_->segment().callers(), segment::kCallersBytes};
  }

  std::atomic<uint64_t>* moves_elsewhere() override { return &links_->own_state().moves_elsewhere; }

  absl::Status AllReduce(const void* in, void* out, size_t count, DataType type, ReduceOp op,
                         const CallOptions& options) override;
  bool TakesPieces() const override { return true; }
  absl::Status AllReducePieces(absl::Span<const Piece> pieces, DataType type, ReduceOp op,
                               FinishFunction finish, const CallOptions& options) override;
  absl::Status AllGather(const void* in, void* out, absl::Span<const size_t> byte_counts,
                         const CallOptions& options) override;
  absl::Status Broadcast(void* buffer, size_t bytes, int root, const CallOptions& options) override;
  absl::Status BroadcastStretches(absl::Span<const Stretch> stretches, int root,
                                  ObserveFunction observe, const CallOptions& options) override;
  absl::Status AllToAll(const void* in, absl::Span<const size_t> send_bytes, void* out,
                        absl::Span<const size_t> receive_bytes,
                        const CallOptions& options) override;
  absl::Status ReduceScatter(const void* in, void* out, absl::Span<const size_t> counts,
                             DataType type, ReduceOp op, const CallOptions& options) override;
  absl::Status SendReceive(int peer, const void* in, void* out, size_t bytes,
                           const CallOptions& options) override;
  absl::Status Barrier(const CallOptions& options) override;
  void Abort(absl::string_view reason) override;

 private:
  // Runs one operation; an error's message contains the operation's name and number and this rank.
  absl::Status Run(absl::string_view operation, const CallOptions& options,
                   absl::FunctionRef<absl::Status(absl::Duration timeout)> body);

  using Sources = absl::InlinedVector<const void*, 8>;  // of a reduction

  absl::Status ReduceSmall(const PieceList& pieces, const Reducer& reducer, FinishFunction finish,
                           absl::Duration timeout);
  absl::Status ReduceLarge(const PieceList& pieces, const Reducer& reducer, FinishFunction finish,
                           absl::Duration timeout);
  // Reduces `in` and the peers' contributions to this rank's chunk at `place`, from `offset` bytes
  // on, into `out`, which may equal `in`. `bytes` is the size of `count` elements.
  void ReduceWithPeers(const Reducer& reducer, uint64_t place, size_t offset, const char* in,
                       char* out, size_t bytes, size_t count) const;
  absl::Status GatherLarge(const char* in, char* out, absl::Span<const size_t> byte_counts,
                           absl::Duration timeout);
  absl::Status BroadcastSmall(const StretchList& list, int root, ObserveFunction observe,
                              absl::Duration timeout);
  absl::Status BroadcastLarge(const StretchList& list, int root, ObserveFunction observe,
                              absl::Duration timeout);
  absl::Status AllToAllLarge(const char* in, absl::Span<const size_t> send, char* out,
                             absl::Span<const size_t> receive, size_t largest,
                             absl::Duration timeout);
  // Sets `write_` before an operation on `bytes`, the same number on all ranks. Repeats the
  // measurement from time to time, since virtual machines move between cores.
  absl::Status ChooseWriting(size_t bytes, absl::Duration timeout);
  // The largest of the ranks' values.
  absl::StatusOr<size_t> Largest(size_t value, absl::Duration timeout);
  // The size of one rank's part of a block.
  size_t ChunkBytes() const { return links_->segment().geometry().chunk_bytes; }
  // How much of a part of `bytes` goes into one block: a multiple of all element sizes.
  size_t StepBytes(size_t bytes) const;
  char* Chunk(int rank, uint64_t place, int owner) const {
    return links_->segment().chunk(rank, place, owner);
  }

  const Epoch epoch_;
  const std::unique_ptr<ShmLinks> links_;
  const ShmWriting writing_;
  CopyFunction write_ = PlainCopy;  // for large data
  size_t bytes_until_probe_ = 0;
  ShmMailbox mailbox_;
  SmallExchange small_;
  BlockRing ring_;
  uint64_t calls_ = 0;  // the same on all ranks, so that errors of different ranks can be matched
};

}  // namespace hvd::collectives::shm

#endif  // COLLECTIVES_SHM_SHM_COMMUNICATOR_H_
