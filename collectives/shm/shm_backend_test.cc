#include "collectives/shm/shm_backend.h"

#include <vector>

#include "collectives/conformance/conformance.h"
#include "collectives/conformance/memory_key_exchange.h"

namespace hvd::collectives::shm {
namespace {

using conformance::BackendConformanceTest;
INSTANTIATE_TEST_SUITE_P(
    Shm, BackendConformanceTest,
    testing::Values(conformance::BackendCase{"plain",
                                             [] { return MakeShmBackend(ShmWriting::kPlain); }},
                    conformance::BackendCase{"streaming",
                                             [] { return MakeShmBackend(ShmWriting::kStreaming); }},
                    conformance::BackendCase{"probe", [] { return MakeShmBackend(); }}),
    [](const auto& info) { return info.param.name; });

TEST(ShmBackendTest, Connect_TakesOneKeyExchange) {
  conformance::RankGroup group(MakeShmBackend());
  group.Connect(4);
  EXPECT_EQ(group.key_exchanges(), 4) << "one call per rank";
}

TEST(ShmBackendTest, Connect_GroupOfOneNeedsNoKeyExchange) {
  conformance::KeyExchangeTable keys(1);
  const auto communicator =
      MakeShmBackend()->Connect({Epoch(1), 0, 1, "", "secret"}, *keys.ForRank(0), absl::Seconds(1));
  ASSERT_TRUE(communicator.ok()) << communicator.status();
  EXPECT_EQ(keys.calls(), 0);
}

}  // namespace
}  // namespace hvd::collectives::shm
