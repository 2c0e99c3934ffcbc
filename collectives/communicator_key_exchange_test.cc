#include "collectives/communicator_key_exchange.h"

#include "collectives/conformance/rank_group.h"
#include "collectives/inproc/inproc_backend.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::collectives {
namespace {

TEST(CommunicatorKeyExchange, AllGather_ValuesOfAnyLengthInRankOrder) {
  conformance::RankGroup group(inproc::MakeInprocBackend());
  group.Connect(3);
  group.Run([](Communicator& communicator) {
    CommunicatorKeyExchange keys(communicator);
    const std::string own(communicator.rank() * 1000, static_cast<char>('0' + communicator.rank()));
    for (int round = 0; round < 2; ++round) {
      const auto values = keys.AllGather("key", own, absl::Seconds(60));
      ASSERT_TRUE(values.ok()) << values.status();
      EXPECT_THAT(*values,
                  testing::ElementsAre("", std::string(1000, '1'), std::string(2000, '2')));
    }
  });
}

// As somebody on the network could change it.
TEST(CommunicatorKeyExchange, AllGather_ImpossibleLength_IsRefused) {
  conformance::RankGroup group(inproc::MakeInprocBackend());
  group.Connect(2);
  group.Run([](Communicator& communicator) {
    if (communicator.rank() == 0) {
      CommunicatorKeyExchange keys(communicator);
      EXPECT_EQ(keys.AllGather("key", "value", absl::Seconds(60)).status(),
                absl::InternalError("rank 1 offers a value of 18446744073709551612 bytes for key"));
      return;
    }
    const uint64_t length = -4;  // the sum with rank 0's is 1
    uint64_t lengths[2];
    EXPECT_TRUE(
        communicator
            .AllGather(&length, lengths, {sizeof(length), sizeof(length)}, {absl::Seconds(60)})
            .ok());
  });
}

TEST(CommunicatorKeyExchange, AllGather_PeerIsGone_IsTheCommunicatorsError) {
  conformance::RankGroup group(inproc::MakeInprocBackend());
  group.Connect(2);
  group.Destroy(1);
  CommunicatorKeyExchange keys(group.at(0));
  EXPECT_EQ(keys.AllGather("key", "value", absl::Seconds(60)).status().code(),
            absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace hvd::collectives
