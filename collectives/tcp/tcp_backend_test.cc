#include "collectives/tcp/tcp_backend.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <thread>

#include "absl/synchronization/mutex.h"
#include "base/fd.h"
#include "base/net/tls_session.h"
#include "collectives/conformance/conformance.h"
#include "collectives/conformance/memory_key_exchange.h"
#include "collectives/links/links_backend.h"
#include "collectives/tcp/link_address.h"
#include "rendezvous/security/job_credentials.h"

namespace hvd::collectives::tcp {
namespace {

// The TLS context of the workers of one job.
std::shared_ptr<const net::TlsContext> NewTls() {
  const rendezvous::security::PeerCredentials issued =
      *(*rendezvous::security::JobAuthority::Create("job"))->IssueForHost("any host");
  return *net::TlsContext::Create({issued.ca_certificate, issued.certificate, issued.private_key});
}

// Splits nearly all messages, nearly from the begin.
std::unique_ptr<MeshBackend> MakeSplittingTcp() {
  return MakeSparseTcpBackend(links::kMostDirectRanks,
                              {.large_bytes = 100, .review_bytes = 200, .always = true});
}

// A backend that connects each rank with `tls[rank]`, or with the last one.
class UnderTls : public Backend {
 public:
  explicit UnderTls(std::vector<std::shared_ptr<const net::TlsContext>> tls,
                    std::unique_ptr<Backend> tcp = MakeTcpBackend())
      : tls_(std::move(tls)), tcp_(std::move(tcp)) {}

  absl::string_view name() const override { return "tcp under TLS"; }
  absl::StatusOr<std::unique_ptr<Communicator>> Connect(const GroupInfo& group, KeyExchange& keys,
                                                        const WaitBounds& bounds) override {
    GroupInfo safe = group;
    safe.tls = tls_[std::min<size_t>(group.rank, tls_.size() - 1)];
    return tcp_->Connect(safe, keys, bounds);
  }

 private:
  const std::vector<std::shared_ptr<const net::TlsContext>> tls_;
  const std::unique_ptr<Backend> tcp_;
};

std::unique_ptr<Backend> MakeTcpUnderTls() {
  return std::make_unique<UnderTls>(std::vector{NewTls()});
}

std::unique_ptr<Backend> MakeSplittingTcpUnderTls() {
  return std::make_unique<UnderTls>(std::vector{NewTls()}, MakeSplittingTcp());
}

using conformance::BackendCase;
using conformance::BackendConformanceTest;
INSTANTIATE_TEST_SUITE_P(Tcp, BackendConformanceTest,
                         testing::Values(BackendCase{"tcp", MakeTcpBackend},
                                         BackendCase{"tcp_under_tls", MakeTcpUnderTls},
                                         BackendCase{"tcp_splitting", MakeSplittingTcp},
                                         BackendCase{"tcp_splitting_under_tls",
                                                     MakeSplittingTcpUnderTls}));

const CallOptions kPatient = {absl::Seconds(60)};

bool Mentions(const absl::Status& status, const std::string& text) {
  return std::string(status.message()).find(text) != std::string::npos;
}

TEST(TcpBackendTest, Connect_TakesOneKeyExchange) {
  conformance::RankGroup group(MakeTcpBackend());
  group.Connect(4);
  EXPECT_EQ(group.key_exchanges(), 4) << "one call per rank";
}

TEST(TcpBackendTest, Connect_GroupOfOneNeedsNeitherAddressNorKeyExchange) {
  conformance::KeyExchangeTable keys(1);
  const auto communicator =
      MakeTcpBackend()->Connect({Epoch(1), 0, 1, "", "secret"}, *keys.ForRank(0), absl::Seconds(1));
  ASSERT_TRUE(communicator.ok()) << communicator.status();
  EXPECT_EQ(keys.calls(), 0);
}

// The rank with the wrong secret fails at once; the others keep waiting for the true rank 2.
TEST(TcpBackendTest, Connect_NamesTheStranger) {
  conformance::RankGroup group(MakeTcpBackend());
  const std::vector<absl::Status> statuses =
      group.Connect({"secret", "secret", "guess"}, absl::Seconds(2));
  EXPECT_TRUE(Mentions(statuses[2], "rank 0 does not know")) << statuses[2];
  EXPECT_TRUE(Mentions(statuses[0], "from rank 2; unauthenticated connections refused: 1"))
      << statuses[0];
  EXPECT_TRUE(Mentions(statuses[1], "from rank 2")) << statuses[1];
}

// One rank has another job's certificate, and one has none.
TEST(TcpBackendTest, Connect_UnderTls_OthersAreRefused) {
  const auto tls = NewTls();
  for (const auto& stranger : {NewTls(), std::shared_ptr<const net::TlsContext>()}) {
    conformance::RankGroup group(std::make_unique<UnderTls>(std::vector{tls, tls, stranger}));
    for (const absl::Status& status :
         group.Connect({"secret", "secret", "secret"}, absl::Milliseconds(500))) {
      EXPECT_FALSE(status.ok());
    }
  }
}

TEST(TcpBackendTest, Connect_RefusesAnAddressThatIsNotOurs) {
  for (const char* address : {"localhost", "nonsense", "", "192.0.2.1", "127.0.0.1:80"}) {
    conformance::KeyExchangeTable keys(2);
    const auto connected = MakeTcpBackend()->Connect({Epoch(1), 0, 2, address, "secret"},
                                                     *keys.ForRank(0), absl::Seconds(1));
    EXPECT_EQ(connected.status().code(), absl::StatusCode::kInvalidArgument) << address;
    EXPECT_EQ(keys.calls(), 0) << "nobody must wait for a rank that can't come";
  }
}

TEST(TcpBackendTest, Connect_OverIpv6) {
  conformance::KeyExchangeTable keys(2);
  const auto backend = MakeTcpBackend();
  conformance::ForEachRank(2, [&](int rank) {
    const auto communicator = backend->Connect({Epoch(1), rank, 2, "::1", "secret"},
                                               *keys.ForRank(rank), absl::Seconds(60));
    ASSERT_TRUE(communicator.ok()) << communicator.status();
    EXPECT_EQ((*communicator)->Barrier(kPatient), absl::OkStatus());
  });
}

// A key exchange that takes part in the real one but returns a modified result to the backend.
class MisleadingExchange : public KeyExchange {
 public:
  using Change = std::function<absl::StatusOr<std::vector<std::string>>(std::vector<std::string>)>;
  MisleadingExchange(std::unique_ptr<KeyExchange> real, Change change)
      : real_(std::move(real)), change_(std::move(change)) {}

  absl::StatusOr<std::vector<std::string>> AllGather(absl::string_view key, absl::string_view value,
                                                     absl::Duration timeout) override {
    values_ = *real_->AllGather(key, value, timeout);
    return change_(values_);
  }
  const std::vector<std::string>& values() const { return values_; }

 private:
  const std::unique_ptr<KeyExchange> real_;
  const Change change_;
  std::vector<std::string> values_;
};

// Rank 1 dies between the key exchange and the connections.
TEST(TcpBackendTest, Connect_NamesTheRankThatCannotBeReached) {
  conformance::KeyExchangeTable keys(2);
  const auto backend = MakeTcpBackend();
  absl::Status statuses[2];
  conformance::ForEachRank(2, [&](int rank) {
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
  // Which of the two errors it is depends on which rank would have opened the connection.
  EXPECT_TRUE(absl::IsUnavailable(statuses[0]) || absl::IsDeadlineExceeded(statuses[0]));
  EXPECT_TRUE(Mentions(statuses[0], "rank 1")) << statuses[0];
}

TEST(TcpBackendTest, Connect_SurvivesMalformedEntries) {
  for (const std::string& entry : {std::string(), std::string("short"), std::string(64, '\xff')}) {
    conformance::KeyExchangeTable keys(1);
    MisleadingExchange exchange(keys.ForRank(0), [&](std::vector<std::string> values) {
      values.insert(values.begin(), entry);
      return values;
    });
    const auto connected = MakeTcpBackend()->Connect({Epoch(1), 1, 2, "127.0.0.1", "secret"},
                                                     exchange, absl::InfiniteDuration());
    EXPECT_FALSE(connected.ok());
    EXPECT_TRUE(Mentions(connected.status(), "rank 0: its entry")) << connected.status();
  }
}

// A connection to the port at the address `entry`.
int ComeTo(const std::string& entry) {
  const auto address = ParseLinkAddress(entry);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&address->storage), address->length), 0);
  return fd;
}

// Connects all ranks, but strangers connect to every port first. Then the ranks run operations.
void ExpectConnectsDespite(const std::function<void(const std::string& entry)>& intrude) {
  constexpr int kRanks = 3;
  conformance::KeyExchangeTable keys(kRanks);
  conformance::KeyExchangeTable come(kRanks);
  const auto backend = MakeTcpBackend();
  conformance::ForEachRank(kRanks, [&](int rank) {
    MisleadingExchange exchange(keys.ForRank(rank), [&](std::vector<std::string> values) {
      intrude(values[rank]);
      EXPECT_TRUE(come.ForRank(rank)->AllGather("come", "", absl::InfiniteDuration()).ok());
      return values;
    });
    const auto connected = backend->Connect({Epoch(1), rank, kRanks, "127.0.0.1", "secret"},
                                            exchange, absl::Seconds(60));
    ASSERT_TRUE(connected.ok()) << connected.status();
    for (int i = 0; i < 10; ++i) {
      if (i == 5) intrude(exchange.values()[rank]);
      int32_t one = 1;
      ASSERT_EQ((*connected)->AllReduce(&one, &one, 1, DataType::kInt32, ReduceOp::kSum, kPatient),
                absl::OkStatus());
      EXPECT_EQ(one, kRanks);
    }
  });
}

TEST(TcpBackendTest, SilentStrangers_AreIgnored) {
  absl::Mutex mutex;
  std::vector<Fd> strangers;
  ExpectConnectsDespite([&](const std::string& entry) {
    for (int i = 0; i < 20; ++i) {
      absl::MutexLock lock(&mutex);
      strangers.emplace_back(ComeTo(entry));
    }
  });
}

// Each of these would terminate the process if Gloo's event loop were not guarded.
TEST(TcpBackendTest, StrangersThatSpeakGloo_AreIgnored) {
  const size_t unknown_slot[] = {64, 1, 99, 0, 16, 0};
  const size_t absurd_length[] = {48, 1, 2, 0, size_t{1} << 60, 0};
  const size_t unknown_message[] = {48, 77, 0, 0, 0, 0};
  for (const size_t* message : {unknown_slot, absurd_length, unknown_message}) {
    absl::Mutex mutex;
    std::vector<Fd> strangers;
    ExpectConnectsDespite([&](const std::string& entry) {
      const int fd = ComeTo(entry);
      EXPECT_EQ(write(fd, message, 6 * sizeof(size_t)), static_cast<ssize_t>(6 * sizeof(size_t)));
      absl::MutexLock lock(&mutex);
      strangers.emplace_back(fd);
    });
  }
}

TEST(TcpBackendTest, StrangersThatResetConnections_AreIgnored) {
  ExpectConnectsDespite([](const std::string& entry) {
    for (int i = 0; i < 20; ++i) {
      const int fd = ComeTo(entry);
      const linger reset = {1, 0};
      setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
      close(fd);
    }
  });
}

// The number of listening sockets of this process.
int ListeningSockets() {
  int listening = 0;
  for (int fd = 0; fd < 1024; ++fd) {
    int value = 0;
    socklen_t length = sizeof(value);
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &value, &length) == 0) listening += value;
  }
  return listening;
}

TEST(TcpBackendTest, EachRank_ListensOnOnePort) {
  conformance::RankGroup group(MakeTcpBackend());
  group.Connect(4);
  EXPECT_EQ(ListeningSockets(), 4);
  for (int rank = 0; rank < 4; ++rank) group.Destroy(rank);
  EXPECT_EQ(ListeningSockets(), 0);
}

TEST(TcpBackendTest, Connect_Cancelled_EndsAtOnceWithThatReason) {
  conformance::KeyExchangeTable keys(2);
  Cancellation cancellation;
  MisleadingExchange exchange(keys.ForRank(0), [&](std::vector<std::string> values) {
    cancellation.Cancel(absl::AbortedError("rank 1 has died"));
    return values;
  });
  std::thread rank1([&] {
    EXPECT_TRUE(keys.ForRank(1)->AllGather("tcp-mesh", "", absl::InfiniteDuration()).ok());
  });
  const auto connected = MakeTcpBackend()->Connect(
      {Epoch(1), 0, 2, "127.0.0.1", "secret"}, exchange, {absl::InfiniteDuration(), &cancellation});
  rank1.join();
  EXPECT_EQ(connected.status().code(), absl::StatusCode::kAborted);
  EXPECT_TRUE(Mentions(connected.status(), "rank 1 has died")) << connected.status();
}

TEST(TcpBackendTest, ErrorsSayWhichCallOfWhichRank) {
  conformance::RankGroup group(MakeTcpBackend());
  group.Connect(2);
  group.Run([](Communicator& c) { EXPECT_EQ(c.Barrier(kPatient), absl::OkStatus()); });
  group.Destroy(0);
  const absl::Status status = group.at(1).Barrier(kPatient);
  EXPECT_EQ(status.message(), "barrier (call 2; tcp, rank 1 of 2, epoch 1): rank 0 is gone");
}

}  // namespace
}  // namespace hvd::collectives::tcp
