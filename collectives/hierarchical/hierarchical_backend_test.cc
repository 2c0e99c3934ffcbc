#include "collectives/hierarchical/hierarchical_backend.h"

#include <thread>  // NOLINT: ranks are threads

#include "absl/synchronization/notification.h"
#include "collectives/conformance/conformance.h"
#include "collectives/conformance/memory_key_exchange.h"
#include "collectives/hierarchical/on_hosts_testing.h"
#include "collectives/inproc/inproc_backend.h"
#include "collectives/shm/shm_backend.h"
#include "collectives/tcp/tcp_backend.h"

namespace hvd::collectives::hierarchical {

// The conformance suite is linked into this test, but another test instantiates it.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(BackendConformanceTest);

namespace {

const CallOptions kPatient = {absl::Seconds(60)};
const CallOptions kHasty = {absl::Milliseconds(50)};

bool Mentions(const absl::Status& status, const std::string& text) {
  return std::string(status.message()).find(text) != std::string::npos;
}

std::string TwoEach(int rank) { return std::to_string(rank / 2); }
std::string OneHost(int rank) { return "host"; }

std::unique_ptr<Backend> Inproc(const std::string& host) { return inproc::MakeInprocBackend(); }

std::unique_ptr<Backend> MakeShm(const std::string& host) { return shm::MakeShmBackend(); }
std::unique_ptr<MeshBackend> MakeInprocMesh() { return inproc::MakeInprocBackend(); }

// A mesh that is connected; then its rank 7 dies before its first operation.
class MeshOfMissing : public MeshBackend {
 public:
  explicit MeshOfMissing(Cancellation& cancellation)
      : cancellation_(cancellation), real_(inproc::MakeInprocBackend()) {}

  absl::string_view name() const override { return "missing"; }
  absl::StatusOr<std::unique_ptr<Communicator>> Connect(const GroupInfo& group, KeyExchange& keys,
                                                        const WaitBounds& bounds) override {
    return real_->Connect(group, keys, bounds);
  }
  absl::StatusOr<std::unique_ptr<MeshCommunicator>> ConnectMesh(const GroupInfo& group,
                                                                KeyExchange& keys,
                                                                const WaitBounds& bounds) override {
    auto mesh = real_->ConnectMesh(group, keys, bounds);
    if (group.rank != 7) return mesh;
    cancellation_.Cancel(absl::AbortedError("rank 7 has died"));
    absl::MutexLock lock(&mutex_);
    kept_ = *std::move(mesh);
    return absl::AbortedError("rank 7 has died");
  }

 private:
  Cancellation& cancellation_;
  const std::unique_ptr<MeshBackend> real_;
  absl::Mutex mutex_;
  std::unique_ptr<MeshCommunicator> kept_
      ABSL_GUARDED_BY(mutex_);  // kept alive, so that it sends no goodbye
};

FakeHosts TwoHosts() { return {TwoEach, Inproc, tcp::MakeTcpBackend}; }

// A backend that connects nobody. If `asks` is set, it exchanges keys before it fails.
class UnwillingBackend : public Backend {
 public:
  UnwillingBackend(absl::Status status, bool asks) : status_(std::move(status)), asks_(asks) {}
  absl::string_view name() const override { return "unwilling"; }
  absl::StatusOr<std::unique_ptr<Communicator>> Connect(const GroupInfo& group, KeyExchange& keys,
                                                        const WaitBounds& bounds) override {
    if (asks_) {
      EXPECT_EQ(keys.AllGather("key", "value", bounds.timeout)->size(),
                static_cast<size_t>(group.size));
    }
    return status_;
  }

 private:
  const absl::Status status_;
  const bool asks_;
};

// The kind of communicator that the ranks got.
void ExpectAllAre(conformance::RankGroup& group, const std::string& kind) {
  group.Run([&](Communicator& c) {
    EXPECT_EQ(c.ToString().substr(0, kind.size()), kind) << c.ToString();
    int32_t one = 1;
    EXPECT_EQ(c.AllReduce(&one, &one, 1, DataType::kInt32, ReduceOp::kSum, kPatient),
              absl::OkStatus());
    EXPECT_EQ(one, c.size());
  });
}

TEST(HierarchicalBackendTest, Connect_OneHost_OneExchangeOfItsOwn) {
  conformance::RankGroup group(MakeBackendOnHosts({OneHost, Inproc, tcp::MakeTcpBackend}));
  group.Connect(3);
  EXPECT_EQ(group.key_exchanges(), 3);
  ExpectAllAre(group, "inproc");
}

TEST(HierarchicalBackendTest, Connect_OneRank_NeedsNoExchange) {
  conformance::RankGroup group(MakeBackendOnHosts({OneHost, Inproc, tcp::MakeTcpBackend}));
  group.Connect(1);
  EXPECT_EQ(group.key_exchanges(), 0);
}

TEST(HierarchicalBackendTest, Connect_NothingShared_IsTheMesh) {
  conformance::RankGroup group(
      MakeBackendOnHosts({[](int) { return std::string(); }, Inproc, tcp::MakeTcpBackend}));
  group.Connect(3);
  EXPECT_EQ(group.key_exchanges(), 6);
  ExpectAllAre(group, "tcp");
}

TEST(HierarchicalBackendTest, Connect_SeveralHosts_BothAndNamesItself) {
  conformance::RankGroup group(MakeBackendOnHosts(TwoHosts()));
  group.Connect(4);
  EXPECT_EQ(group.key_exchanges(), 16) << "hosts, mesh, one for the hosts' own use, outcome";
  ExpectAllAre(group, "hierarchical");
  EXPECT_EQ(group.at(3).ToString(), "hierarchical, rank 3 of 4 on 2 hosts, epoch 1");
}

// The number of values that the daemon returns must not grow with the square of the ranks.
TEST(HierarchicalBackendTest, Connect_LargeGroup_IsShownNoMoreThanItsHosts) {
  constexpr int kHosts = 11, kEach = 6, kRanks = kHosts * kEach;
  const auto six_each = [](int rank) { return std::to_string(rank / kEach); };
  conformance::RankGroup group(MakeBackendOnHosts({six_each, MakeShm, MakeInprocMesh}));
  group.Connect(kRanks);
  EXPECT_EQ(group.shown_keys(), size_t{kRanks * kEach});
  ExpectAllAre(group, "hierarchical");
  EXPECT_EQ(group.at(13).ToString(), "hierarchical, rank 13 of 66 on 11 hosts, epoch 1");
}

TEST(HierarchicalBackendTest, Connect_LargeGroupOnOneHost_NeedsNoMesh) {
  conformance::RankGroup group(MakeBackendOnHosts({OneHost, Inproc, tcp::MakeTcpBackend}));
  group.Connect(66);
  EXPECT_EQ(group.shown_keys(), 66u) << "where rank 0 is";
  ExpectAllAre(group, "inproc");
}

TEST(HierarchicalBackendTest, Connect_LargeGroup_NothingShared_IsTheMesh) {
  for (const bool named : {false, true}) {
    const auto host_of = [named](int rank) { return named ? std::to_string(rank) : ""; };
    conformance::RankGroup group(MakeBackendOnHosts({host_of, MakeShm, MakeInprocMesh}));
    group.Connect(66);
    EXPECT_EQ(group.shown_keys(), 0u);
    ExpectAllAre(group, "inproc");
  }
}

// The mesh waits for a missing rank when the cancellation comes.
TEST(HierarchicalBackendTest, Connect_LargeGroup_CancelledOverTheMesh_EndsWithThatReason) {
  constexpr int kRanks = 66;
  Cancellation cancellation;
  conformance::KeyExchangeTable keys(kRanks);
  const auto hosts = [](int rank) { return std::to_string(rank / 6); };
  const auto backend = MakeBackendOnHosts(
      {hosts, MakeShm, [&] { return std::make_unique<MeshOfMissing>(cancellation); }});
  conformance::ForEachRank(kRanks, [&](int rank) {
    const auto connected =
        backend->Connect({Epoch(1), rank, kRanks, "127.0.0.1", "secret"}, *keys.ForRank(rank),
                         {absl::InfiniteDuration(), &cancellation});
    EXPECT_EQ(connected.status(), absl::AbortedError("rank 7 has died"));
  });
}

TEST(HierarchicalBackendTest, Connect_LocalUnimplemented_MeshAlone) {
  for (const bool asks : {false, true}) {
    conformance::RankGroup group(MakeBackendOnHosts({OneHost,
                                                     [&](const std::string&) {
                                                       return std::make_unique<UnwillingBackend>(
                                                           absl::UnimplementedError("no"), asks);
                                                     },
                                                     tcp::MakeTcpBackend}));
    group.Connect(2);
    ExpectAllAre(group, "tcp");
  }
}

TEST(HierarchicalBackendTest, Connect_LocalFailsOnOneHost_MeshAloneForAll) {
  for (const bool asks : {false, true}) {
    FakeHosts hosts = TwoHosts();
    hosts.make_local = [&](const std::string& host) -> std::unique_ptr<Backend> {
      if (host == "0") return inproc::MakeInprocBackend();
      return std::make_unique<UnwillingBackend>(absl::InternalError("broken"), asks);
    };
    conformance::RankGroup group(MakeBackendOnHosts(hosts));
    group.Connect(5);
    ExpectAllAre(group, "tcp");
  }
}

TEST(HierarchicalBackendTest, Connect_LocalErrorOnOneHost_IsReported) {
  conformance::RankGroup group(MakeBackendOnHosts(
      {OneHost,
       [&](const std::string&) {
         return std::make_unique<UnwillingBackend>(absl::PermissionDeniedError("who?"), false);
       },
       tcp::MakeTcpBackend}));
  for (const absl::Status& status : group.Connect({"a", "a"})) {
    EXPECT_EQ(status, absl::PermissionDeniedError("who?"));
  }
}

// If one rank switches the hierarchy off, it is off on all ranks; otherwise they would wait for
// each other.
TEST(HierarchicalBackendTest, Options_OneRanksNoCountsForAll) {
  FakeHosts hosts = TwoHosts();
  hosts.options_of = [](int rank) { return HierarchyOptions{rank != 2, rank != 1}; };
  conformance::RankGroup group(MakeBackendOnHosts(hosts));
  group.Connect(4);
  group.Run([&](Communicator& c) {
    for (int i = 0; i < 4; ++i) {
      int32_t values[4] = {1, 0, 0, 0};
      EXPECT_EQ(c.AllReduce(values, values, 1, DataType::kInt32, ReduceOp::kSum, kPatient),
                absl::OkStatus());
      const int32_t sum = values[0];
      EXPECT_EQ(sum, 4);
      EXPECT_EQ(c.AllGather(&sum, values, std::vector<size_t>(4, sizeof(sum)), kPatient),
                absl::OkStatus());
      EXPECT_EQ(values[3], 4);
      int32_t block = 0;
      EXPECT_EQ(c.ReduceScatter(values, &block, std::vector<size_t>(4, 1), DataType::kInt32,
                                ReduceOp::kSum, kPatient),
                absl::OkStatus());
      EXPECT_EQ(block, 16);
    }
  });
}

class HierarchicalFailureTest : public testing::TestWithParam<const char*> {
 protected:
  // The statuses of the operation on three of four ranks; `meanwhile` is called while they are in
  // it.
  std::vector<absl::Status> CallOnAllBut(int absent, const conformance::AnyOperation& operation,
                                         const CallOptions& options,
                                         const std::function<void()>& meanwhile) {
    std::vector<absl::Status> statuses(4);
    std::atomic<int> called{0};
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 4; ++rank) {
      if (rank == absent) continue;
      threads.emplace_back([&, rank] {
        ++called;
        // A small operation may complete before the absent rank is needed.
        for (int i = 0; i < 3 && statuses[rank].ok(); ++i) {
          statuses[rank] = operation.call(group_.at(rank), absent, options);
        }
      });
    }
    while (called < 3) std::this_thread::yield();
    meanwhile();
    for (std::thread& thread : threads) thread.join();
    return statuses;
  }

  static std::unique_ptr<Backend> Local(const std::string& host) {
    if (IsParam("shm and tcp")) return shm::MakeShmBackend();
    return inproc::MakeInprocBackend();
  }
  static std::unique_ptr<MeshBackend> Across() {
    return IsParam("inproc") ? inproc::MakeInprocBackend() : tcp::MakeTcpBackend();
  }
  // Over sockets the last message of a rank that gave up because of `first` may be lost; then that
  // rank is named, alone or beside `first`.
  static bool TellsWhoIsGone(const absl::Status& status, int first) {
    if (Mentions(status, absl::StrCat("because of rank ", first))) return true;
    return IsParam("inproc") ? Mentions(status, absl::StrCat("rank ", first, " is gone"))
                             : Mentions(status, " is gone");
  }
  static bool IsParam(const std::string& name) { return GetParam() == name; }

  conformance::RankGroup group_{MakeBackendOnHosts({TwoEach, Local, Across})};
};

TEST_P(HierarchicalFailureTest, Abort_ReachesTheOthersWithItsName) {
  for (const conformance::AnyOperation& operation : conformance::AllOperations()) {
    for (const int aborted : {0, 1, 3}) {
      group_.Connect(4);
      const std::vector<absl::Status> statuses =
          CallOnAllBut(2, operation, kPatient, [&] { group_.at(aborted).Abort("enough"); });
      for (const int rank : {0, 1, 3}) {
        const absl::Status& status = statuses[rank];
        if (rank == aborted) {
          EXPECT_EQ(status, absl::AbortedError("enough")) << operation.name;
          continue;
        }
        EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << operation.name << status;
        EXPECT_TRUE(TellsWhoIsGone(status, aborted)) << operation.name << ": " << status;
        EXPECT_FALSE(operation.call(group_.at(rank), 2, kPatient).ok());
      }
    }
  }
}

TEST_P(HierarchicalFailureTest, PeerLeaves_AllOthersFail) {
  for (const conformance::AnyOperation& operation : conformance::AllOperations()) {
    group_.Connect(4);
    const std::vector<absl::Status> statuses =
        CallOnAllBut(1, operation, kPatient, [&] { group_.Destroy(1); });
    for (const int rank : {0, 2, 3}) {
      EXPECT_EQ(statuses[rank].code(), absl::StatusCode::kUnavailable)
          << operation.name << ", rank " << rank << ": " << statuses[rank];
    }
  }
}

TEST_P(HierarchicalFailureTest, Timeout_AllFail) {
  for (const conformance::AnyOperation& operation : conformance::AllOperations()) {
    group_.Connect(4);
    const std::vector<absl::Status> statuses = CallOnAllBut(3, operation, kHasty, [] {});
    for (const int rank : {0, 1, 2}) {
      EXPECT_FALSE(statuses[rank].ok()) << operation.name << ", rank " << rank;
      EXPECT_FALSE(operation.call(group_.at(rank), 3, kPatient).ok()) << operation.name;
    }
  }
}

// No rank is in an operation when the abort comes.
TEST_P(HierarchicalFailureTest, Abort_BetweenOperations_LaterCallsFail) {
  for (const conformance::AnyOperation& operation : conformance::AllOperations()) {
    group_.Connect(4);
    group_.at(0).Abort("enough");
    for (int rank = 1; rank < 4; ++rank) {
      const absl::Status status = operation.call(group_.at(rank), rank ^ 1, kPatient);
      EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << operation.name << status;
      EXPECT_TRUE(TellsWhoIsGone(status, 0)) << operation.name << ": " << status;
    }
    EXPECT_EQ(operation.call(group_.at(0), 1, kPatient), absl::AbortedError("enough"));
  }
}

INSTANTIATE_TEST_SUITE_P(Made, HierarchicalFailureTest,
                         testing::Values("inproc", "inproc and tcp", "shm and tcp"));

}  // namespace
}  // namespace hvd::collectives::hierarchical
