// The hierarchical communicator of a group on several hosts: a communicator within this rank's host
// and a mesh of all ranks.
#ifndef COLLECTIVES_HIERARCHICAL_HIERARCHICAL_COMMUNICATOR_H_
#define COLLECTIVES_HIERARCHICAL_HIERARCHICAL_COMMUNICATOR_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "collectives/block.h"
#include "collectives/hierarchical/hierarchical_backend.h"
#include "collectives/hierarchical/host_layout.h"
#include "collectives/mesh.h"

namespace hvd::collectives::hierarchical {

// Thread-safety and errors as in Communicator. Reductions give the same bits on all ranks.
//
// A failure on one rank fails all: the mesh spreads it to all ranks, with the name of its cause,
// and an abort wakes the ranks that wait within their host.
class HierarchicalCommunicator : public Communicator {
 public:
  // REQUIRES: there are at least two hosts, and `local` connects the ranks of this one.
  HierarchicalCommunicator(const GroupInfo& group, const HostLayout& layout,
                           const HierarchyOptions& options, std::unique_ptr<Communicator> local,
                           std::unique_ptr<MeshCommunicator> mesh);

  int rank() const override { return mesh_->rank(); }
  int size() const override { return mesh_->size(); }
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
  std::optional<int> FindUnreached() override { return mesh_->FindUnreached(); }
  void Abort(absl::string_view reason) override;

 private:
  // The parameters of a reduction that is done within each host first, and then across hosts in
  // `columns` parts at the same time, one per column.
  struct Reduction {
    DataType type;
    ReduceOp op;
    int columns = 1;
  };
  absl::Status ReduceChunk(const void* in, void* out, size_t count, const Reduction& reduction,
                           const CallOptions& options);
  // The buffers of a reduce-scatter. blocks[r]: the part of `in` that rank r gets, reduced.
  struct Scattering {
    const void* in;
    void* out;
    const std::vector<Block>& blocks;
  };
  // For `count` elements of every block, from element `first` on.
  absl::Status ReduceSlices(const Scattering& scattering, size_t first, size_t count,
                            const Reduction& reduction, const CallOptions& options);
  absl::Status BroadcastChunk(void* buffer, size_t bytes, int root, const CallOptions& options);

  // Runs one operation; a failure breaks both parts.
  absl::Status Run(absl::string_view operation, absl::FunctionRef<absl::Status()> body);
  // Passes `status` on; if it is an error, records that it comes from the host's communicator.
  absl::Status InHost(const absl::Status& status);
  absl::Status Fail(absl::string_view operation, const absl::Status& status);
  // The reason to report for a failure within the host.
  absl::Status ExplainHostFailure(absl::string_view operation, const absl::Status& status);
  void OnMeshBroken(const absl::Status& why);
  bool IsInColumn(int column) const { return layout_.index == column && column_ != nullptr; }

  const Epoch epoch_;
  const HostLayout layout_;
  const HierarchyOptions options_;
  bool failed_in_host_ = false;
  std::vector<char> packed_, sums_;  // of ReduceSlices

  absl::Mutex mutex_;
  absl::Status aborted_ ABSL_GUARDED_BY(mutex_);
  absl::Status broken_ ABSL_GUARDED_BY(mutex_);
  absl::Status mesh_status_ ABSL_GUARDED_BY(mutex_);

  // The mesh's listener uses the members above and local_, so the mesh is destroyed before them.
  const std::unique_ptr<Communicator> local_;
  const std::unique_ptr<MeshCommunicator> mesh_;
  const std::unique_ptr<Communicator> column_;  // of this rank's index, if all hosts have it
};

}  // namespace hvd::collectives::hierarchical

#endif  // COLLECTIVES_HIERARCHICAL_HIERARCHICAL_COMMUNICATOR_H_
