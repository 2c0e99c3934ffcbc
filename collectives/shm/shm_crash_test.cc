// The death of a rank in a separate process, at any moment of any operation, without a last
// message. All other ranks detect it before their timeouts.
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <random>
#include <string>
#include <vector>

#include "base/net/frames.h"
#include "base/status_macros.h"
#include "collectives/shm/shm_backend.h"
#include "gtest/gtest.h"

namespace hvd::collectives::shm {
namespace {

constexpr int kRanks = 3;
constexpr int kTester = 1;  // this process
constexpr CallOptions kPatient = {absl::Seconds(60)};

// A key exchange between processes: every rank sends its value to rank 0, which sends all values to
// every rank. sockets[r] connects rank 0 and rank r.
class StarExchange : public KeyExchange {
 public:
  StarExchange(int rank, std::vector<int> sockets) : rank_(rank), sockets_(std::move(sockets)) {}

  absl::StatusOr<std::vector<std::string>> AllGather(absl::string_view, absl::string_view value,
                                                     absl::Duration) override {
    std::vector<std::string> values(kRanks, std::string(value));
    if (rank_ > 0) RETURN_IF_ERROR(net::WriteFrame(sockets_[rank_], value));
    for (int rank = rank_ > 0 ? 0 : 1; rank < kRanks; ++rank) {
      ASSIGN_OR_RETURN(values[rank], net::ReadFrame(sockets_[rank_ > 0 ? rank_ : rank], 1 << 20));
    }
    for (int peer = 1; rank_ == 0 && peer < kRanks; ++peer) {
      for (const std::string& each : values) RETURN_IF_ERROR(net::WriteFrame(sockets_[peer], each));
    }
    return values;
  }

 private:
  const int rank_;
  const std::vector<int> sockets_;
};

enum class Operation {
  kAllReduce,
  kAllGather,
  kBroadcast,
  kAllToAll,
  kReduceScatter,
  kSendReceive
};

// Calls the operation with this many elements per rank. `victim` dies at some moment.
absl::Status Call(Communicator& c, Operation operation, size_t count, int victim) {
  constexpr size_t kMost = 300000;
  static auto* const in = new std::vector<float>(kRanks * kMost, 1);
  static auto* const out = new std::vector<float>(kRanks * kMost);
  const std::vector<size_t> counts(kRanks, count), bytes(kRanks, count * sizeof(float));
  constexpr DataType kType = DataType::kFloat32;
  switch (operation) {
    case Operation::kAllReduce:
      return c.AllReduce(in->data(), out->data(), count, kType, ReduceOp::kSum, kPatient);
    case Operation::kAllGather:
      return c.AllGather(in->data(), out->data(), bytes, kPatient);
    case Operation::kBroadcast:
      return c.Broadcast(out->data(), bytes[0], victim, kPatient);
    case Operation::kAllToAll:
      return c.AllToAll(in->data(), bytes, out->data(), bytes, kPatient);
    case Operation::kReduceScatter:
      return c.ReduceScatter(in->data(), out->data(), counts, kType, ReduceOp::kSum, kPatient);
    case Operation::kSendReceive:
      break;
  }
  // The third rank waits for both.
  if (c.rank() != kTester && c.rank() != victim) return c.Barrier(kPatient);
  return c.SendReceive(c.rank() == victim ? kTester : victim, in->data(), out->data(), bytes[0],
                       kPatient);
}

absl::StatusOr<std::unique_ptr<Communicator>> Connect(int rank, ShmWriting writing,
                                                      const std::vector<int>& sockets) {
  StarExchange keys(rank, sockets);
  return MakeShmBackend(writing)->Connect({Epoch(1), rank, kRanks, "", "secret"}, keys,
                                          absl::Seconds(60));
}

// Runs operations until one fails; returns its status.
absl::Status Work(Communicator& communicator, Operation operation, size_t count, int victim) {
  while (true) RETURN_IF_ERROR(Call(communicator, operation, count, victim));
}

// The process of another rank. The victim's is killed by a signal at a random time.
[[noreturn]] void RunRank(int rank, int victim, int microseconds, Operation operation, size_t count,
                          ShmWriting writing, const std::vector<int>& sockets) {
  const auto communicator = Connect(rank, writing, sockets);
  if (!communicator.ok()) _exit(2);
  if (rank == victim) {
    itimerval timer = {};
    timer.it_value.tv_usec = microseconds;
    setitimer(ITIMER_REAL, &timer, nullptr);
  }
  _exit(absl::IsUnavailable(Work(**communicator, operation, count, victim)) ? 0 : 1);
}

void ConnectAll(std::vector<int>& at_root, std::vector<int>& at_members) {
  for (int rank = 1; rank < kRanks; ++rank) {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    at_root[rank] = ends[0];
    at_members[rank] = ends[1];
  }
}

void CloseAll(const std::vector<int>& at_root, const std::vector<int>& at_members) {
  for (int rank = 1; rank < kRanks; ++rank) {
    close(at_root[rank]);
    close(at_members[rank]);
  }
}

void LoseARank(Operation operation, size_t count, ShmWriting writing, int victim,
               int microseconds) {
  std::vector<int> at_root(kRanks, -1), at_members(kRanks, -1);
  ConnectAll(at_root, at_members);
  std::vector<pid_t> processes(kRanks, -1);
  for (int rank = 0; rank < kRanks; ++rank) {
    if (rank == kTester) continue;
    processes[rank] = fork();  // there are no threads
    if (processes[rank] == 0) {
      RunRank(rank, victim, microseconds, operation, count, writing,
              rank == 0 ? at_root : at_members);
    }
  }
  const auto communicator = Connect(kTester, writing, at_members);
  ASSERT_TRUE(communicator.ok()) << communicator.status();
  const absl::Status status = Work(**communicator, operation, count, victim);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_NE(status.message().find("rank " + std::to_string(victim)), absl::string_view::npos)
      << status;
  for (int rank = 0; rank < kRanks; ++rank) {
    if (rank == kTester) continue;
    int ended = 0;
    ASSERT_EQ(waitpid(processes[rank], &ended, 0), processes[rank]);
    if (rank == victim) {
      EXPECT_TRUE(WIFSIGNALED(ended));
    } else {
      EXPECT_EQ(ended, 0) << "the other survivor did not learn of it";
    }
  }
  CloseAll(at_root, at_members);
}

// Only rank 0 has sockets to all other ranks.
TEST(ShmLinksTest, RankDiesAfterTheFirstHasLeft_AnotherLearnsOfIt) {
  std::vector<int> at_root(kRanks, -1), at_members(kRanks, -1);
  ConnectAll(at_root, at_members);
  const pid_t first = fork();  // there are no threads
  if (first == 0) {
    auto communicator = Connect(0, ShmWriting::kPlain, at_root);
    if (!communicator.ok()) _exit(2);
    communicator->reset();
    _exit(0);
  }
  const pid_t victim = fork();
  if (victim == 0)
    RunRank(2, 2, 20000, Operation::kSendReceive, 300000, ShmWriting::kPlain, at_members);
  const auto communicator = Connect(kTester, ShmWriting::kPlain, at_members);
  ASSERT_TRUE(communicator.ok()) << communicator.status();
  int ended = 0;
  ASSERT_EQ(waitpid(first, &ended, 0), first);
  EXPECT_EQ(ended, 0);
  const absl::Status status = Work(**communicator, Operation::kSendReceive, 300000, 2);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_NE(status.message().find("rank 2 is gone"), absl::string_view::npos) << status;
  ASSERT_EQ(waitpid(victim, &ended, 0), victim);
  EXPECT_TRUE(WIFSIGNALED(ended));
  CloseAll(at_root, at_members);
}

struct Case {
  const char* name;
  Operation operation;
};

class ShmCrashTest : public testing::TestWithParam<Case> {};

TEST_P(ShmCrashTest, RankDiesAtAnyMoment_AllOthersLearnOfIt) {
  std::mt19937 random(static_cast<unsigned>(testing::UnitTest::GetInstance()->random_seed()));
  for (int round = 0; round < 20; ++round) {
    const int victim = round % 2 == 0 ? 0 : 2;
    const size_t count = round % 4 < 2 ? 100 : 300000;
    const ShmWriting writing = round % 3 == 0 ? ShmWriting::kStreaming : ShmWriting::kProbe;
    const int microseconds = 1 + static_cast<int>(random() % 5000);
    SCOPED_TRACE(testing::Message() << "victim " << victim << ", " << count << " elements, after "
                                    << microseconds << " us");
    LoseARank(GetParam().operation, count, writing, victim, microseconds);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Operations, ShmCrashTest,
                         testing::Values(Case{"AllReduce", Operation::kAllReduce},
                                         Case{"AllGather", Operation::kAllGather},
                                         Case{"Broadcast", Operation::kBroadcast},
                                         Case{"AllToAll", Operation::kAllToAll},
                                         Case{"ReduceScatter", Operation::kReduceScatter},
                                         Case{"SendReceive", Operation::kSendReceive}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace hvd::collectives::shm
