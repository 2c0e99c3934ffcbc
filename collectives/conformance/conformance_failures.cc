// Failures: abort, lost peers, timeouts, strangers. None of these tests waits for time to pass,
// except for the timeouts that it is about.
#include <atomic>
#include <thread>  // NOLINT: ranks are threads

#include "absl/synchronization/notification.h"
#include "collectives/conformance/conformance.h"
#include "collectives/conformance/memory_key_exchange.h"

namespace hvd::collectives::conformance {
namespace {

const CallOptions kPatient = {absl::Seconds(60)};
const CallOptions kHasty = {absl::Milliseconds(20)};

bool Mentions(const absl::Status& status, const std::string& text) {
  return std::string(status.message()).find(text) != std::string::npos;
}

// Rank 0 does not call the operation; rank 1 is aborted while it waits for rank 0, and rank 2 gets
// the error.
TEST_P(BackendConformanceTest, Abort_EndsEveryOperationOnAllRanks) {
  for (const AnyOperation& operation : AllOperations()) {
    group_.Connect(3);
    absl::Notification called;
    absl::Status aborted, other;
    std::thread rank1([&] {
      called.Notify();
      aborted = operation.call(group_.at(1), 0, kPatient);
    });
    std::thread rank2([&] { other = operation.call(group_.at(2), 0, kPatient); });
    called.WaitForNotification();
    group_.at(1).Abort("the world has changed");
    group_.at(1).Abort("a later reason");
    rank1.join();
    rank2.join();
    EXPECT_EQ(aborted, absl::AbortedError("the world has changed")) << operation.name;
    EXPECT_EQ(other.code(), absl::StatusCode::kUnavailable) << operation.name << ": " << other;
    EXPECT_TRUE(!GetParam().names_peers || Mentions(other, "rank 1 is gone") ||
                Mentions(other, "because of rank 1"))
        << operation.name << ": " << other;
  }
}

TEST_P(BackendConformanceTest, Abort_LaterCallsFailAtOnce) {
  for (int ranks = 1; ranks <= 2; ++ranks) {
    group_.Connect(ranks);
    group_.at(0).Abort("enough");
    for (const AnyOperation& operation : AllOperations()) {
      if (ranks == 1 && std::string(operation.name) == "SendReceive") continue;
      EXPECT_EQ(operation.call(group_.at(0), ranks - 1, kPatient), absl::AbortedError("enough"))
          << operation.name;
    }
  }
}

// The abort comes while data is on its way.
TEST_P(BackendConformanceTest, Abort_InTheMiddleOfLargeTransfers) {
  group_.Connect(3);
  absl::Notification under_way;
  std::vector<absl::Status> statuses(3);
  std::thread aborter([&] {
    under_way.WaitForNotification();
    group_.at(1).Abort("stop");
  });
  group_.Run([&](Communicator& c) {
    std::vector<float> data(1 << 20, 1);
    absl::Status& status = statuses[c.rank()];
    for (int i = 0; status.ok(); ++i) {
      status = c.AllReduce(data.data(), data.data(), data.size(), DataType::kFloat32,
                           ReduceOp::kMax, kPatient);
      if (i == 2 && c.rank() == 0) under_way.Notify();
    }
  });
  aborter.join();
  EXPECT_EQ(statuses[1], absl::AbortedError("stop"));
  EXPECT_EQ(statuses[0].code(), absl::StatusCode::kUnavailable) << statuses[0];
  EXPECT_EQ(statuses[2].code(), absl::StatusCode::kUnavailable) << statuses[2];
}

TEST_P(BackendConformanceTest, PeerLeaves_EveryOperationThatNeedsItFails) {
  for (const AnyOperation& operation : AllOperations()) {
    group_.Connect(2);
    absl::Notification called;
    absl::Status status;
    std::thread rank1([&] {
      called.Notify();
      status = operation.call(group_.at(1), 0, kPatient);
    });
    called.WaitForNotification();
    group_.Destroy(0);
    rank1.join();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << operation.name << ": " << status;
    EXPECT_TRUE(!GetParam().names_peers || Mentions(status, "rank 0"))
        << operation.name << ": " << status;
    EXPECT_FALSE(operation.call(group_.at(1), 0, kPatient).ok()) << operation.name;
  }
}

// A rank that has its result may leave while the others still finish the same operation.
TEST_P(BackendConformanceTest, PeerLeavesInOrder_OthersFinishTheirOperation) {
  for (int round = 0; round < 5; ++round) {
    group_.Connect(4);
    ForEachRank(4, [&](int rank) {
      std::vector<float> data(300000, 1);
      EXPECT_EQ(group_.at(rank).AllReduce(data.data(), data.data(), data.size(), DataType::kFloat32,
                                          ReduceOp::kSum, kPatient),
                absl::OkStatus());
      EXPECT_EQ(data.back(), 4);
      group_.Destroy(rank);
    });
  }
}

TEST_P(BackendConformanceTest, Timeout_NamesTheRankThatDidNotCome) {
  for (const AnyOperation& operation : AllOperations()) {
    group_.Connect(2);
    const absl::Status status = operation.call(group_.at(1), 0, kHasty);
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << operation.name << status;
    EXPECT_TRUE(!GetParam().names_peers || Mentions(status, "rank 0"))
        << operation.name << ": " << status;
    EXPECT_FALSE(operation.call(group_.at(1), 0, kPatient).ok()) << operation.name;
    // What rank 1 has sent before may be all that rank 0 needs, but not for a second operation.
    const bool had_all = operation.call(group_.at(0), 1, kPatient).ok();
    EXPECT_FALSE(had_all && operation.call(group_.at(0), 1, kPatient).ok()) << operation.name;
  }
}

// The rank with the wrong secret is refused at once. The others wait for the true rank until their
// deadline, or until another one's deadline has passed first.
TEST_P(BackendConformanceTest, Connect_RefusesAStranger) {
  const std::vector<absl::Status> statuses =
      group_.Connect({"secret", "secret", "guess"}, absl::Seconds(2));
  EXPECT_EQ(statuses[2].code(), absl::StatusCode::kPermissionDenied) << statuses[2];
  for (const absl::Status& status : statuses) {
    EXPECT_TRUE(absl::IsPermissionDenied(status) || absl::IsDeadlineExceeded(status) ||
                absl::IsUnavailable(status))
        << status;
  }
}

TEST_P(BackendConformanceTest, Connect_RankThatNeverComes) {
  const std::unique_ptr<Backend> backend = GetParam().make();
  KeyExchangeTable keys(2);
  const GroupInfo info = {Epoch(1), 0, 2, "127.0.0.1", "secret"};
  const auto connected = backend->Connect(info, *keys.ForRank(0), absl::Milliseconds(50));
  EXPECT_EQ(connected.status().code(), absl::StatusCode::kDeadlineExceeded) << connected.status();
}

TEST_P(BackendConformanceTest, Connect_RefusesANonsensicalGroup) {
  const std::unique_ptr<Backend> backend = GetParam().make();
  KeyExchangeTable keys(1);
  for (const auto& [rank, size] : {std::pair(1, 1), std::pair(-1, 2), std::pair(0, 0)}) {
    const GroupInfo info = {Epoch(1), rank, size, "127.0.0.1", "secret"};
    EXPECT_EQ(backend->Connect(info, *keys.ForRank(0), absl::Seconds(1)).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace hvd::collectives::conformance
