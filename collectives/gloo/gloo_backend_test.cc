#include "collectives/gloo/gloo_backend.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <thread>

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

// Opens a connection to where the maker of `entry` waits for rank 1.
int ConnectLikeRank1(const std::string& entry) {
  // A nonce of 16 bytes, no address for rank 0 (a byte), the length of rank 1's address (a byte),
  // and that.
  sockaddr_in address = {};
  std::memcpy(&address, entry.data() + 18, sizeof(address));
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  return fd;
}

// What rank 0 of 2 gets if `intrude` has its way with its address.
absl::Status ConnectAgainstIntruder(const std::function<void(const std::string&)>& intrude) {
  KeyExchangeTable keys(1);
  MisleadingExchange exchange(keys.ForRank(0), [&](std::vector<std::string> values) {
    intrude(values[0]);
    // Rank 1 claims to wait where rank 0 does, one port lower: nobody listens there in all
    // likelihood.
    std::string entry = values[0].substr(0, 16);
    std::string address = values[0].substr(17);
    address[4] = static_cast<char>(address[4] - 1);
    values.push_back(entry + address + std::string(1, '\0'));
    return values;
  });
  return MakeGlooBackend()
      ->Connect({Epoch(1), 0, 2, "127.0.0.1", "secret"}, exchange, absl::Milliseconds(200))
      .status();
}

// Any of these would end the process if Gloo were left to itself.
TEST(GlooBackendTest, Connect_SurvivesIntruders) {
  const size_t unknown_slot[] = {64, 1, 99, 0, 16, 0};
  const size_t absurd_length[] = {48, 1, 2, 0, size_t{1} << 60, 0};
  const size_t unknown_message[] = {48, 77, 0, 0, 0, 0};
  for (const size_t* message : {unknown_slot, absurd_length, unknown_message}) {
    int fd = -1;
    const absl::Status status = ConnectAgainstIntruder([&](const std::string& entry) {
      fd = ConnectLikeRank1(entry);
      EXPECT_EQ(write(fd, message, 6 * sizeof(size_t)), static_cast<ssize_t>(6 * sizeof(size_t)));
    });
    EXPECT_TRUE(Mentions(status, "rank 1")) << status;
    close(fd);
  }
}

TEST(GlooBackendTest, Connect_SurvivesAConnectionThatIsResetAtOnce) {
  for (int round = 0; round < 20; ++round) {
    const absl::Status status = ConnectAgainstIntruder([](const std::string& entry) {
      const int fd = ConnectLikeRank1(entry);
      const linger reset = {1, 0};
      setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
      close(fd);
    });
    EXPECT_TRUE(Mentions(status, "rank 1")) << status;
  }
}

TEST(GlooBackendTest, Connect_Cancelled_EndsAtOnceWithThatReason) {
  KeyExchangeTable keys(2);
  Cancellation cancellation;
  // Rank 1 shows where it would wait, and dies.
  MisleadingExchange exchange(keys.ForRank(0), [&](std::vector<std::string> values) {
    std::string entry = values[0].substr(0, 16);
    values[1] = entry + values[0].substr(17) + std::string(1, '\0');
    cancellation.Cancel(absl::AbortedError("rank 1 has died"));
    return values;
  });
  std::thread rank1([&] {
    EXPECT_TRUE(keys.ForRank(1)->AllGather("gloo-mesh", "", absl::InfiniteDuration()).ok());
  });
  const auto connected = MakeGlooBackend()->Connect(
      {Epoch(1), 0, 2, "127.0.0.1", "secret"}, exchange, {absl::InfiniteDuration(), &cancellation});
  rank1.join();
  EXPECT_EQ(connected.status().code(), absl::StatusCode::kAborted);
  EXPECT_TRUE(Mentions(connected.status(), "rank 1 has died")) << connected.status();
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
