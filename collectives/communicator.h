// The communicator interface: the collectives of one group of ranks in one epoch. Backends
// implement it; the engine calls it.
#ifndef COLLECTIVES_COMMUNICATOR_H_
#define COLLECTIVES_COMMUNICATOR_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "collectives/mailbox.h"
#include "collectives/types.h"

namespace hvd::collectives {

// The bounds of a call.
struct CallOptions {
  // How long nothing may move, in either direction, while this rank waits. As long as data moves,
  // an operation may take any time.
  absl::Duration timeout = absl::Seconds(30);
};

// One memory block of an all-reduce of several blocks.
struct Piece {
  const void* in = nullptr;
  void* out = nullptr;  // may equal `in`
  size_t count = 0;
};

// One memory block. `data` is nullptr if `bytes` is 0, or if the caller does not need the bytes.
struct Stretch {
  void* data = nullptr;
  size_t bytes = 0;
};

// The alignment of blocks that are laid out contiguously: each begins at the next multiple of this.
inline constexpr size_t kStretchAlignment = 64;

// Memory that all ranks of a communicator map, each at an address of its own: a block for each
// rank, in rank order.
struct SharedMemory {
  char* data = nullptr;  // a multiple of the size of a page
  size_t bytes_per_rank = 0;
};

// A callback that receives the bytes of stretches in order, each byte once, while they are in the
// CPU cache. One call covers `count` bytes of one stretch, from a multiple of kStretchAlignment on.
using ObserveFunction = absl::FunctionRef<void(const void* bytes, size_t count)>;

// A callback that changes elements of a result in place, each element once: `count` elements from
// `data` on, any number per call. It runs on the thread that called the operation.
using FinishFunction = absl::FunctionRef<void(void* data, size_t count)>;

// Blocking collectives. One thread at a time may call the operations; every rank must call the same
// operations in the same order with matching arguments (the engine's negotiation ensures that).
// Abort() may be called from any thread at any time. Buffers belong to the caller and must live
// until the call returns. Sizes are in elements of `type` or, where stated, in bytes.
//
// After any error except Unimplemented the communicator is broken and must be destroyed.
// Errors of every operation:
//   - Unavailable: a peer or the link to it is gone.
//   - DataLoss: the same, because what it sent was changed on the way: TLS says so, or no rank
//     sends such a message.
//   - DeadlineExceeded: nothing has moved for the timeout.
//   - Aborted: Abort() was called; the message is the reason given there.
//   - Unimplemented: this backend lacks the operation; the communicator stays usable.
//   - Internal: a bug, here or in the backend's library.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // "tcp, rank 1 of 4, epoch 3": for logs and error messages.
  virtual std::string ToString() const = 0;

  // Lives as long as the communicator; nullptr: this backend has no mailbox.
  virtual Mailbox* mailbox() { return nullptr; }

  // Memory for the caller's own use, valid as long as the communicator; the operations leave it
  // alone, and order accesses of it. Takes no room before it is used. nullopt, on all ranks alike:
  // they share none.
  virtual std::optional<SharedMemory> shared_memory() { return std::nullopt; }

  // A counter that the caller raises while it moves data elsewhere that this communicator's ranks
  // wait for: that counts as movement on all of them. Valid as long as the communicator. nullptr:
  // it has none.
  virtual std::atomic<uint64_t>* moves_elsewhere() { return nullptr; }

  // out[i] = op over all ranks of in[i]; `in` may equal `out`.
  virtual absl::Status AllReduce(const void* in, void* out, size_t count, DataType type,
                                 ReduceOp op, const CallOptions& options) = 0;

  // Whether AllReducePieces is implemented, and cheaper than packing the pieces into one buffer.
  virtual bool TakesPieces() const { return false; }

  // AllReduce of several memory blocks at once. All ranks have the same counts; `finish` is applied
  // to the result while it is in the cache.
  // REQUIRES: TakesPieces().
  virtual absl::Status AllReducePieces(absl::Span<const Piece> pieces, DataType type, ReduceOp op,
                                       FinishFunction finish, const CallOptions& options) {
    return absl::UnimplementedError("this backend takes no pieces");
  }

  // Concatenates every rank's `in` in rank order. byte_counts[r] is the size of rank r's part;
  // size() entries.
  virtual absl::Status AllGather(const void* in, void* out, absl::Span<const size_t> byte_counts,
                                 const CallOptions& options) = 0;

  // Copies root's buffer to those of all ranks.
  virtual absl::Status Broadcast(void* buffer, size_t bytes, int root,
                                 const CallOptions& options) = 0;

  // Copies root's stretches, whose sizes are the same on all ranks, to those of all ranks.
  // `observe` gets the bytes on every rank. The default implementation packs small stretches
  // together and broadcasts each large one by itself.
  virtual absl::Status BroadcastStretches(absl::Span<const Stretch> stretches, int root,
                                          ObserveFunction observe, const CallOptions& options);

  // Rank r receives from each rank s the block that s laid out for it. Both spans have size()
  // entries, in bytes; blocks are contiguous, in rank order.
  virtual absl::Status AllToAll(const void* in, absl::Span<const size_t> send_bytes, void* out,
                                absl::Span<const size_t> receive_bytes,
                                const CallOptions& options) = 0;

  // Reduces like AllReduce; then rank r keeps the r-th block of counts[r] elements. `in` is left
  // unchanged, but `out` may be the r-th block of `in`, which then changes.
  virtual absl::Status ReduceScatter(const void* in, void* out, absl::Span<const size_t> counts,
                                     DataType type, ReduceOp op, const CallOptions& options) = 0;

  // Sends `in` to `peer` and receives as many bytes from it into `out`; the buffers don't overlap.
  virtual absl::Status SendReceive(int peer, const void* in, void* out, size_t bytes,
                                   const CallOptions& options) = 0;

  virtual absl::Status Barrier(const CallOptions& options) = 0;

  // After a failed call, on its thread: a rank that the network does not reach any more, if one is
  // known, as the cause of the failure or one of its causes.
  virtual std::optional<int> FindUnreached() { return std::nullopt; }

  // Makes the running call and all later ones fail with Aborted(reason), soon. Does not block.
  // Later reasons are ignored.
  virtual void Abort(absl::string_view reason) = 0;
};

}  // namespace hvd::collectives

#endif  // COLLECTIVES_COMMUNICATOR_H_
