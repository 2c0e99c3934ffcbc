// The communicator over a Hub: every operation is "send to all, receive from all, compute the
// result".
#ifndef COLLECTIVES_INPROC_INPROC_COMMUNICATOR_H_
#define COLLECTIVES_INPROC_INPROC_COMMUNICATOR_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "collectives/inproc/hub.h"
#include "collectives/mesh.h"

namespace hvd::collectives::inproc {

// A rank's membership in a hub, which ends with this object.
class HubMember {
 public:
  HubMember(std::shared_ptr<Hub> hub, int rank) : hub_(std::move(hub)), rank_(rank) {}
  ~HubMember() { hub_->Leave(rank_); }
  HubMember(const HubMember&) = delete;
  HubMember& operator=(const HubMember&) = delete;

  Hub& hub() const { return *hub_; }
  int rank() const { return rank_; }

 private:
  const std::shared_ptr<Hub> hub_;
  const int rank_;
};

// Thread-safety and errors as in Communicator. Reductions are done in rank order.
class InprocCommunicator : public MeshCommunicator {
 public:
  // Among the hub's `ranks`, renumbered.
  InprocCommunicator(std::shared_ptr<HubMember> self, Epoch epoch, std::vector<int> ranks);

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(ranks_.size()); }
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
  void Abort(absl::string_view reason) override;
  absl::Status ExchangeBlocks(const void* in, const std::vector<Block>& send, void* out,
                              const std::vector<Block>& receive,
                              const CallOptions& options) override;
  std::unique_ptr<Communicator> Subset(const std::vector<int>& ranks) override;
  void OnBroken(std::function<void(const absl::Status&)> listener) override;

 private:
  // Each rank's message for this one, in rank order; `for_rank(r)` is this rank's message for rank
  // r.
  absl::StatusOr<std::vector<std::string>> ExchangeAll(absl::string_view operation,
                                                       absl::FunctionRef<std::string(int)> for_rank,
                                                       const CallOptions& options);
  // Breaks the group; adds the operation and this rank to the message.
  absl::Status Fail(absl::string_view operation, const absl::Status& status);

  const std::shared_ptr<HubMember> self_;
  Hub& hub_;
  const Epoch epoch_;
  const std::vector<int> ranks_;  // the hub's numbers
  const int rank_;
};

}  // namespace hvd::collectives::inproc

#endif  // COLLECTIVES_INPROC_INPROC_COMMUNICATOR_H_
