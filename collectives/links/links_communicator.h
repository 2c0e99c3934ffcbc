// The communicator over Peers: each operation selects its phases by size.
#ifndef COLLECTIVES_LINKS_LINKS_COMMUNICATOR_H_
#define COLLECTIVES_LINKS_LINKS_COMMUNICATOR_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "collectives/links/algorithms.h"
#include "collectives/links/peers.h"
#include "collectives/mesh.h"

namespace hvd::collectives::links {

// Thread-safety and errors as in Communicator. Reductions are bitwise equal on all ranks.
class LinksCommunicator : public MeshCommunicator {
 public:
  // Groups of up to `most_direct` ranks use the direct and ring algorithms, larger ones doubling,
  // trees and rings.
  // REQUIRES: peers.size() >= 2.
  LinksCommunicator(Epoch epoch, Peers peers, int most_direct);

  int rank() const override { return peers_.rank(); }
  int size() const override { return peers_.size(); }
  std::string ToString() const override;

  absl::Status AllReduce(const void* in, void* out, size_t count, DataType type, ReduceOp op,
                         const CallOptions& options) override;
  absl::Status AllGather(const void* in, void* out, absl::Span<const size_t> byte_counts,
                         const CallOptions& options) override;
  absl::Status Broadcast(void* buffer, size_t bytes, int root, const CallOptions& options) override;
  absl::Status AllToAll(const void* in, absl::Span<const size_t> send_bytes, void* out,
                        absl::Span<const size_t> receive_bytes,
                        const CallOptions& options) override;
  absl::Status ReduceScatter(const void* in, void* out, absl::Span<const size_t> counts,
                             DataType type, ReduceOp op, const CallOptions& options) override;
  absl::Status SendReceive(int peer, const void* in, void* out, size_t bytes,
                           const CallOptions& options) override;
  absl::Status Barrier(const CallOptions& options) override;
  std::optional<int> FindUnreached() override { return peers_.links()->FindUnreached(); }
  void Abort(absl::string_view reason) override;
  absl::Status ExchangeBlocks(const void* in, const std::vector<Block>& send, void* out,
                              const std::vector<Block>& receive,
                              const CallOptions& options) override;
  std::unique_ptr<Communicator> Subset(const std::vector<int>& ranks) override;
  void OnBroken(std::function<void(const absl::Status&)> listener) override;
  void CountMoves(std::atomic<uint64_t>* counter) override { peers_.links()->CountMoves(counter); }

 private:
  // Runs one operation. An error breaks the links; its message contains the operation's name and
  // number and this rank.
  absl::Status Run(absl::string_view operation, const CallOptions& options,
                   absl::FunctionRef<absl::Status(const Phase&)> body);

  bool IsSmall() const { return size() <= most_direct_; }
  // Whether an operation on this many bytes uses doubling.
  bool Doubles(size_t bytes) const;

  const Epoch epoch_;
  const Peers peers_;
  const int most_direct_;
  Scratch scratch_;
  uint64_t calls_ = 0;  // the same on all ranks, so that errors of different ranks can be matched
};

}  // namespace hvd::collectives::links

#endif  // COLLECTIVES_LINKS_LINKS_COMMUNICATOR_H_
