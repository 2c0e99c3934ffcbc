#include "collectives/nccl/nccl_backend.h"

#include "collectives/conformance/conformance.h"
#include "collectives/nccl/testing/fake_gpu.h"

namespace hvd {
namespace {

// As a host's backend: the fake device's memory is the host's.
class AsHostBackend : public Backend {
 public:
  absl::string_view name() const override { return "nccl"; }
  absl::StatusOr<std::unique_ptr<Communicator>> Connect(const GroupInfo& group, KeyExchange& keys,
                                                        const WaitBounds& bounds) override {
    return backend_->Connect(group, 0, keys, bounds);
  }

 private:
  const std::unique_ptr<DeviceBackend> backend_ = MakeNcclBackend(FakeGpu::Libraries());
};

INSTANTIATE_TEST_SUITE_P(Nccl, BackendConformanceTest,
                         testing::Values(BackendCase{
                             "nccl", [] { return std::make_unique<AsHostBackend>(); },
                             /*names_peers=*/false}));

}  // namespace
}  // namespace hvd
