// Communicator over GlooLinks: each operation picks its phases by size and bounds them by one
// deadline.
#ifndef COLLECTIVES_GLOO_GLOO_COMMUNICATOR_H_
#define COLLECTIVES_GLOO_GLOO_COMMUNICATOR_H_

#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "collectives/communicator.h"
#include "collectives/gloo/gloo_algorithms.h"
#include "collectives/gloo/gloo_links.h"

namespace hvd {

// Thread-safety and errors as in Communicator. Reductions give the same bits on all ranks.
class GlooCommunicator : public Communicator {
 public:
  // REQUIRES: `links` is started.
  GlooCommunicator(Epoch epoch, std::unique_ptr<GlooLinks> links);

  int rank() const override { return links_->rank(); }
  int size() const override { return links_->size(); }
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

 private:
  // Runs one operation; what goes wrong breaks the links and is told with the operation's name, its
  // running number and who we are.
  absl::Status Run(absl::string_view operation, const CallOptions& options,
                   absl::FunctionRef<absl::Status(const Phase&)> body);

  const Epoch epoch_;
  const std::unique_ptr<GlooLinks> links_;
  Scratch scratch_;
  uint64_t calls_ = 0;  // the same on all ranks, so that errors of different ranks can be matched
};

}  // namespace hvd

#endif  // COLLECTIVES_GLOO_GLOO_COMMUNICATOR_H_
