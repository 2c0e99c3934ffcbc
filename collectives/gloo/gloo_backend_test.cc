#include "collectives/gloo/gloo_backend.h"

#include "collectives/conformance/conformance.h"
#include "collectives/conformance/memory_key_exchange.h"

namespace hvd {
namespace {

INSTANTIATE_TEST_SUITE_P(Gloo, BackendConformanceTest,
                         testing::Values(BackendCase{"gloo", MakeGlooBackend}));

const CallOptions kPatient = {absl::Seconds(60)};

bool Mentions(const absl::Status& status, const std::string& text) {
  return std::string(status.message()).find(text) != std::string::npos;
}

TEST(GlooBackendTest, Connect_TakesOneKeyExchange) {
  RankGroup group(MakeGlooBackend());
  group.Connect(4);
  EXPECT_EQ(group.key_exchanges(), 4) << "one call per rank";
}

TEST(GlooBackendTest, Connect_GroupOfOneNeedsNeitherAddressNorKeyExchange) {
  KeyExchangeTable keys(1);
  const auto communicator = MakeGlooBackend()->Connect({Epoch(1), 0, 1, "", "secret"},
                                                       *keys.ForRank(0), absl::Seconds(1));
  ASSERT_TRUE(communicator.ok()) << communicator.status();
  EXPECT_EQ(keys.calls(), 0);
}

TEST(GlooBackendTest, Connect_NamesTheStranger) {
  RankGroup group(MakeGlooBackend());
  const std::vector<absl::Status> statuses = group.Connect({"secret", "secret", "guess"});
  EXPECT_TRUE(Mentions(statuses[0], "rank 2 does not know")) << statuses[0];
  EXPECT_TRUE(Mentions(statuses[1], "rank 2 does not know")) << statuses[1];
}

TEST(GlooBackendTest, Connect_RefusesAnAddressThatIsNotOurs) {
  for (const char* address : {"localhost", "nonsense", "", "192.0.2.1", "127.0.0.1:80"}) {
    KeyExchangeTable keys(2);
    const auto connected = MakeGlooBackend()->Connect({Epoch(1), 0, 2, address, "secret"},
                                                      *keys.ForRank(0), absl::Seconds(1));
    EXPECT_EQ(connected.status().code(), absl::StatusCode::kInvalidArgument) << address;
    EXPECT_EQ(keys.calls(), 0) << "nobody must wait for a rank that can't come";
  }
}

TEST(GlooBackendTest, Connect_OverIpv6) {
  KeyExchangeTable keys(2);
  const auto backend = MakeGlooBackend();
  ForEachRank(2, [&](int rank) {
    const auto communicator = backend->Connect({Epoch(1), rank, 2, "::1", "secret"},
                                               *keys.ForRank(rank), absl::Seconds(60));
    ASSERT_TRUE(communicator.ok()) << communicator.status();
    EXPECT_EQ((*communicator)->Barrier(kPatient), absl::OkStatus());
  });
}

// Takes part in the key exchange but gives the backend something else than what came of it.
class MisleadingExchange : public KeyExchange {
 public:
  using Change = std::function<absl::StatusOr<std::vector<std::string>>(std::vector<std::string>)>;
  MisleadingExchange(std::unique_ptr<KeyExchange> real, Change change)
      : real_(std::move(real)), change_(std::move(change)) {}

  absl::StatusOr<std::vector<std::string>> AllGather(absl::string_view key, absl::string_view value,
                                                     absl::Duration timeout) override {
    return change_(*real_->AllGather(key, value, timeout));
  }

 private:
  const std::unique_ptr<KeyExchange> real_;
  const Change change_;
};

// Rank 1 dies between the key exchange and the connections.
TEST(GlooBackendTest, Connect_NamesTheRankThatCannotBeReached) {
  KeyExchangeTable keys(2);
  const auto backend = MakeGlooBackend();
  absl::Status statuses[2];
  ForEachRank(2, [&](int rank) {
    MisleadingExchange exchange(
        keys.ForRank(rank),
        [&](std::vector<std::string> values) -> absl::StatusOr<std::vector<std::string>> {
          if (rank == 1) return absl::UnavailableError("died");
          return values;
        });
    statuses[rank] =
        backend
            ->Connect({Epoch(1), rank, 2, "127.0.0.1", "secret"}, exchange, absl::Milliseconds(300))
            .status();
  });
  // Which of the two it is depends on who of them would have opened the connection.
  EXPECT_TRUE(absl::IsUnavailable(statuses[0]) || absl::IsDeadlineExceeded(statuses[0]));
  EXPECT_TRUE(Mentions(statuses[0], "rank 1")) << statuses[0];
}

TEST(GlooBackendTest, Connect_SurvivesMalformedEntries) {
  const std::string junk[] = {"", "short", std::string(16, 'n'), std::string(17, '\xff'),
                              std::string(16, 'n') + '\x03' + "abc"};
  for (const std::string& entry : junk) {
    KeyExchangeTable keys(1);
    MisleadingExchange exchange(keys.ForRank(0), [&](std::vector<std::string> values) {
      values.push_back(entry);
      return values;
    });
    const auto connected = MakeGlooBackend()->Connect({Epoch(1), 0, 2, "127.0.0.1", "secret"},
                                                      exchange, absl::Milliseconds(100));
    EXPECT_FALSE(connected.ok());
    EXPECT_TRUE(Mentions(connected.status(), "rank 1")) << connected.status();
  }
}

TEST(GlooBackendTest, ErrorsSayWhichCallOfWhichRank) {
  RankGroup group(MakeGlooBackend());
  group.Connect(2);
  group.Run([](Communicator& c) { EXPECT_EQ(c.Barrier(kPatient), absl::OkStatus()); });
  group.Destroy(0);
  const absl::Status status = group.at(1).Barrier(kPatient);
  EXPECT_EQ(status.message(), "barrier (call 2; gloo, rank 1 of 2, epoch 1): rank 0 is gone");
}

}  // namespace
}  // namespace hvd
