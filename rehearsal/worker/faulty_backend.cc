#include "rehearsal/worker/faulty_backend.h"

#include <atomic>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/net/tcp_socket.h"
#include "base/status_macros.h"

namespace hvd::rehearsal::worker {
namespace {

using collectives::CallOptions;
using collectives::Communicator;
using collectives::DataType;
using collectives::ReduceOp;
using Order = page::FaultPage::Order;

constexpr char kCut[] = "the connections of this rank are cut (horovodrun --inject)";

// Thread-safe as far as the communicator that it owns.
class FaultyCommunicator final : public Communicator {
 public:
  FaultyCommunicator(std::unique_ptr<Communicator> inner, page::FaultPage& page)
      : inner_(std::move(inner)), page_(page) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  std::string ToString() const override { return inner_->ToString(); }
  collectives::Mailbox* mailbox() override { return inner_->mailbox(); }
  std::optional<collectives::SharedMemory> shared_memory() override {
    return inner_->shared_memory();
  }
  std::atomic<uint64_t>* moves_elsewhere() override { return inner_->moves_elsewhere(); }
  bool TakesPieces() const override { return inner_->TakesPieces(); }
  std::optional<int> FindUnreached() override { return inner_->FindUnreached(); }
  void Abort(absl::string_view reason) override { inner_->Abort(reason); }

  absl::Status AllReduce(const void* in, void* out, size_t count, DataType type, ReduceOp op,
                         const CallOptions& options) override {
    RETURN_IF_ERROR(Before());
    RETURN_IF_ERROR(inner_->AllReduce(in, out, count, type, op, options));
    Spoil(out, count, type, op);
    return absl::OkStatus();
  }

  absl::Status AllReducePieces(absl::Span<const collectives::Piece> pieces, DataType type,
                               ReduceOp op, collectives::FinishFunction finish,
                               const CallOptions& options) override {
    RETURN_IF_ERROR(Before());
    RETURN_IF_ERROR(inner_->AllReducePieces(pieces, type, op, finish, options));
    for (const collectives::Piece& piece : pieces) Spoil(piece.out, piece.count, type, op);
    return absl::OkStatus();
  }

  absl::Status AllGather(const void* in, void* out, absl::Span<const size_t> byte_counts,
                         const CallOptions& options) override {
    RETURN_IF_ERROR(Before());
    return inner_->AllGather(in, out, byte_counts, options);
  }

  absl::Status Broadcast(void* buffer, size_t bytes, int root,
                         const CallOptions& options) override {
    RETURN_IF_ERROR(Before());
    return inner_->Broadcast(buffer, bytes, root, options);
  }

  absl::Status BroadcastStretches(absl::Span<const collectives::Stretch> stretches, int root,
                                  collectives::ObserveFunction observe,
                                  const CallOptions& options) override {
    RETURN_IF_ERROR(Before());
    return inner_->BroadcastStretches(stretches, root, observe, options);
  }

  absl::Status AllToAll(const void* in, absl::Span<const size_t> send_bytes, void* out,
                        absl::Span<const size_t> receive_bytes,
                        const CallOptions& options) override {
    RETURN_IF_ERROR(Before());
    return inner_->AllToAll(in, send_bytes, out, receive_bytes, options);
  }

  absl::Status ReduceScatter(const void* in, void* out, absl::Span<const size_t> counts,
                             DataType type, ReduceOp op, const CallOptions& options) override {
    RETURN_IF_ERROR(Before());
    return inner_->ReduceScatter(in, out, counts, type, op, options);
  }

  absl::Status SendReceive(int peer, const void* in, void* out, size_t bytes,
                           const CallOptions& options) override {
    RETURN_IF_ERROR(Before());
    return inner_->SendReceive(peer, in, out, bytes, options);
  }

  absl::Status Barrier(const CallOptions& options) override {
    RETURN_IF_ERROR(Before());
    return inner_->Barrier(options);
  }

 private:
  absl::Status Before() {
    DelayIfOrdered(page_, Order::kSlowLink);
    if (!page_.Take(Order::kCutLink)) return absl::OkStatus();
    // Tells the peers, as broken sockets would.
    inner_->Abort(kCut);
    return absl::UnavailableError(kCut);
  }

  // Gradients are sums. A greatest or smallest number is rather a flag, by which scripts branch.
  void Spoil(void* data, size_t count, DataType type, ReduceOp op) {
    const bool may_be_gradient = count > 0 && IsFloating(type) && op == ReduceOp::kSum;
    if (may_be_gradient && page_.Take(Order::kWrongValue)) FlipBit(data, type);
  }

  const std::unique_ptr<Communicator> inner_;
  page::FaultPage& page_;
};

class FaultyBackend final : public collectives::Backend {
 public:
  FaultyBackend(std::unique_ptr<collectives::Backend> inner, page::FaultPage& page)
      : inner_(std::move(inner)), page_(page) {}

  absl::string_view name() const override { return inner_->name(); }

  absl::StatusOr<std::unique_ptr<Communicator>> Connect(const collectives::GroupInfo& group,
                                                        collectives::KeyExchange& keys,
                                                        const WaitBounds& bounds) override {
    ASSIGN_OR_RETURN(std::unique_ptr<Communicator> inner, inner_->Connect(group, keys, bounds));
    return std::make_unique<FaultyCommunicator>(std::move(inner), page_);
  }

 private:
  const std::unique_ptr<collectives::Backend> inner_;
  page::FaultPage& page_;
};

}  // namespace

std::unique_ptr<collectives::Backend> MakeFaultyBackend(
    std::unique_ptr<collectives::Backend> backend, page::FaultPage& page) {
  return std::make_unique<FaultyBackend>(std::move(backend), page);
}

void DelayIfOrdered(page::FaultPage& page, page::FaultPage::Order order) {
  if (!page.Orders(order)) return;
  page.NoteDone();
  // No descriptor: it sleeps.
  net::AwaitReady(-1, 0, Clock::Real().Now() + page.delay()).IgnoreError();
}

void FlipBit(void* data, DataType type) {
  // The numbers of bits in a mantissa.
  const int bits = type == DataType::kFloat64    ? 52
                   : type == DataType::kFloat32  ? 23
                   : type == DataType::kBfloat16 ? 7
                                                 : 10;
  auto* const byte = static_cast<unsigned char*>(data) + (bits - 1) / 8;  // little-endian
  *byte ^= static_cast<unsigned char>(1 << (bits - 1) % 8);
}

}  // namespace hvd::rehearsal::worker
