#include "collectives/nccl/nccl_backend.h"

#include "base/status_macros.h"
#include "collectives/conformance/conformance.h"
#include "collectives/inproc/inproc_backend.h"
#include "collectives/nccl/testing/fake_gpu.h"

namespace hvd::collectives::nccl {
namespace {

// Runs device communicators as a host backend: the fake device's memory is host memory.
class AsHostBackend : public Backend {
 public:
  explicit AsHostBackend(const NcclBounds& limits = {})
      : backend_(MakeNcclBackend(FakeGpu::Libraries(), {}, limits)) {}
  absl::string_view name() const override { return "nccl"; }
  absl::StatusOr<std::unique_ptr<Communicator>> Connect(const GroupInfo& group, KeyExchange& keys,
                                                        const WaitBounds& bounds) override {
    return backend_->Connect(group, group.rank, keys, bounds);
  }

 private:
  const std::unique_ptr<DeviceBackend> backend_;
};

// Owns a host communicator and the staged communicator over it.
class WithHost : public Communicator {
 public:
  WithHost(std::unique_ptr<Communicator> host, std::unique_ptr<DeviceCommunicator> staged)
      : host_(std::move(host)), staged_(std::move(staged)) {}
  int rank() const override { return staged_->rank(); }
  int size() const override { return staged_->size(); }
  std::string ToString() const override { return staged_->ToString(); }
  absl::Status AllReduce(const void* in, void* out, size_t count, DataType type, ReduceOp op,
                         const CallOptions& options) override {
    return staged_->AllReduce(in, out, count, type, op, options);
  }
  absl::Status AllGather(const void* in, void* out, absl::Span<const size_t> byte_counts,
                         const CallOptions& options) override {
    return staged_->AllGather(in, out, byte_counts, options);
  }
  absl::Status Broadcast(void* buffer, size_t bytes, int root,
                         const CallOptions& options) override {
    return staged_->Broadcast(buffer, bytes, root, options);
  }
  absl::Status AllToAll(const void* in, absl::Span<const size_t> send_bytes, void* out,
                        absl::Span<const size_t> receive_bytes,
                        const CallOptions& options) override {
    return staged_->AllToAll(in, send_bytes, out, receive_bytes, options);
  }
  absl::Status ReduceScatter(const void* in, void* out, absl::Span<const size_t> counts,
                             DataType type, ReduceOp op, const CallOptions& options) override {
    return staged_->ReduceScatter(in, out, counts, type, op, options);
  }
  absl::Status SendReceive(int peer, const void* in, void* out, size_t bytes,
                           const CallOptions& options) override {
    return staged_->SendReceive(peer, in, out, bytes, options);
  }
  absl::Status Barrier(const CallOptions& options) override { return staged_->Barrier(options); }
  void Abort(absl::string_view reason) override { staged_->Abort(reason); }

 private:
  const std::unique_ptr<Communicator> host_;
  const std::unique_ptr<DeviceCommunicator> staged_;
};

class StagedBackend : public Backend {
 public:
  absl::string_view name() const override { return "staged"; }
  absl::StatusOr<std::unique_ptr<Communicator>> Connect(const GroupInfo& group, KeyExchange& keys,
                                                        const WaitBounds& bounds) override {
    ASSIGN_OR_RETURN(auto host, host_->Connect(group, keys, bounds));
    ASSIGN_OR_RETURN(auto staged, backend_->Stage(0, *host));
    return std::make_unique<WithHost>(std::move(host), std::move(staged));
  }

 private:
  const std::unique_ptr<Backend> host_ = inproc::MakeInprocBackend();
  const std::unique_ptr<DeviceBackend> backend_ = MakeNcclBackend(FakeGpu::Libraries(), {});
};

using conformance::BackendConformanceTest;
INSTANTIATE_TEST_SUITE_P(Nccl, BackendConformanceTest,
                         testing::Values(conformance::BackendCase{
                             "nccl", [] { return std::make_unique<AsHostBackend>(); },
                             /*names_peers=*/false}));
// The same library, but its calls wait for peers although the communicators are non-blocking.
class BlockingBackend : public AsHostBackend {
 public:
  BlockingBackend() : AsHostBackend(Limits()) {
    FakeGpu::Faults faults;
    faults.calls_block = true;
    FakeGpu::Set(faults);
  }
  ~BlockingBackend() override { FakeGpu::Reset(); }

 private:
  static NcclBounds Limits() {
    NcclBounds limits;
    limits.stuck_call = absl::Milliseconds(20);
    return limits;
  }
};

INSTANTIATE_TEST_SUITE_P(BlockingNccl, BackendConformanceTest,
                         testing::Values(conformance::BackendCase{
                             "blocking_nccl", [] { return std::make_unique<BlockingBackend>(); },
                             /*names_peers=*/false}));
INSTANTIATE_TEST_SUITE_P(Staged, BackendConformanceTest,
                         testing::Values(conformance::BackendCase{
                             "staged", [] { return std::make_unique<StagedBackend>(); }}));

}  // namespace
}  // namespace hvd::collectives::nccl
