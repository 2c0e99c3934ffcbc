#include "worker_runtime/group/connected_group.h"

#include <memory>
#include <string>
#include <thread>  // NOLINT: the ranks
#include <vector>

#include "collectives/conformance/memory_key_exchange.h"
#include "collectives/inproc/inproc_backend.h"
#include "collectives/nccl/nccl_backend.h"
#include "collectives/nccl/testing/fake_gpu.h"
#include "collectives/shm/shm_backend.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::worker_runtime::group {
namespace {

using collectives::nccl::FakeGpu;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::StartsWith;

// The warnings of a world of one rank whose device has no NCCL, after a sum.
std::vector<std::string> WarningsOfASum() {
  static auto* const libraries = new auto(FakeGpu::Libraries());
  (*libraries)->nccl_status = absl::UnimplementedError("there is no NCCL here");
  const auto backend = collectives::inproc::MakeInprocBackend();
  collectives::conformance::KeyExchangeTable keys(1);
  auto group = ConnectedGroup::Connect({Epoch(1), 0, 1, "", "secret"}, *backend, *keys.ForRank(0),
                                       {"127.0.0.1", 0}, absl::Seconds(60));
  EXPECT_TRUE(group.ok()) << group.status();
  std::vector<std::string> warnings;
  engine::EngineOptions options;
  options.on_warning = [&](const std::string& text) { warnings.push_back(text); };
  (*group)->Start(options, collectives::nccl::MakeNcclBackend(*libraries, {}));
  float value = 1;
  engine::TensorRequest request;
  request.name = "x";
  request.shape = {1};
  request.input = request.output = &value;
  request.device = 0;
  request.on_device = true;
  const auto handle = (*group)->engine()->Submit({request});
  EXPECT_EQ((*group)->engine()->Wait(*handle), absl::OkStatus());
  (*group)->Shutdown();
  return warnings;
}

class ConnectedGroupTest : public testing::Test {
 protected:
  void SetUp() override { FakeGpu::Reset(); }
  void TearDown() override {
    FakeGpu::Reset();
    FakeGpu::AwaitNothingLeft();
  }
};

TEST_F(ConnectedGroupTest, StagedDevices_AreReported) {
  EXPECT_THAT(WarningsOfASum(),
              ElementsAre(AllOf(StartsWith("CUDA tensors go through host memory: "),
                                EndsWith("there is no NCCL here"))));
}

TEST_F(ConnectedGroupTest, PageableMemory_IsReported) {
  FakeGpu::Faults faults;
  faults.pinning_fails = true;
  FakeGpu::Set(faults);
  EXPECT_THAT(WarningsOfASum(),
              ElementsAre(StartsWith("CUDA tensors go through host memory: "),
                          StartsWith("CUDA tensors go through pageable host memory, ")));
}

// As when another rank can't connect: the control channel is there, and no engine has taken it.
TEST_F(ConnectedGroupTest, GroupThatNeverStarts_EndsItsControlChannelFirst) {
  const auto backend = collectives::shm::MakeShmBackend();
  collectives::conformance::KeyExchangeTable keys(2);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([&, rank] {
      auto group =
          ConnectedGroup::Connect({Epoch(1), rank, 2, "127.0.0.1", "secret"}, *backend,
                                  *keys.ForRank(rank), {"127.0.0.1", 0}, absl::Seconds(60));
      ASSERT_TRUE(group.ok()) << group.status();
    });
  }
  for (std::thread& rank : ranks) rank.join();
}

}  // namespace
}  // namespace hvd::worker_runtime::group
