#include "collectives/shm/shm_backend.h"

#include <algorithm>
#include <string>
#include <vector>

#include "collectives/conformance/conformance.h"
#include "collectives/conformance/memory_key_exchange.h"
#include "collectives/conformance/rank_group.h"
#include "collectives/mailbox.h"

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

// A writer may fill the pipe, and sleep for lack of room, while the reader copies from a pipe that
// was not full when it looked. A wake-up that is lost then leaves both asleep: this test hangs.
TEST(ShmBackendTest, Mailbox_WriterThatFillsThePipeWhileTheReaderCopies_IsWoken) {
  constexpr size_t kTotal = size_t{256} << 20;
  conformance::RankGroup group(MakeShmBackend());
  group.Connect(2);
  const auto wait = [](Mailbox& mailbox, Mailbox::Ready ready) {
    if (mailbox.PrepareSleep(ready)) mailbox.AwaitWake(absl::InfiniteDuration());
    mailbox.StayAwake();
  };
  conformance::ForEachRank(2, [&](int rank) {
    Mailbox& mailbox = *group.at(rank).mailbox();
    std::string bytes(rank == 0 ? 7000 : 20000, 'x');
    for (size_t moved = 0; moved < kTotal;) {
      if (rank == 0) {
        const size_t size = std::min(bytes.size(), kTotal - moved);
        const size_t written = mailbox.Write(1, absl::string_view(bytes).substr(0, size));
        moved += written;
        if (written < size) wait(mailbox, [&] { return mailbox.HasRoom(1); });
      } else {
        const size_t read = mailbox.Read(0, &bytes[0], bytes.size());
        moved += read;
        if (read == 0) wait(mailbox, [&] { return mailbox.HasData(0); });
      }
    }
  });
}

}  // namespace
}  // namespace hvd::collectives::shm
