// The loss of a rank in a group of separate processes, two on each of two hosts: one is killed, and
// so sends no last message.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "collectives/conformance/forked_key_exchange.h"
#include "collectives/hierarchical/hierarchical_backend.h"
#include "collectives/shm/shm_backend.h"
#include "collectives/tcp/tcp_backend.h"
#include "gtest/gtest.h"

namespace hvd::collectives::hierarchical {
namespace {

using conformance::ForkedKeyExchange;

constexpr int kRanks = 4;
const CallOptions kPatient = {absl::Seconds(60)};

// Reduces until an operation fails; calls `each` after every operation.
template <typename F>
absl::Status ReduceUntilFailure(ForkedKeyExchange& keys, int rank, size_t elements, F each) {
  keys.set_rank(rank);
  const auto backend = MakeHierarchicalBackend(rank < 2 ? "first" : "second", HierarchyOptions(),
                                               shm::MakeShmBackend(), tcp::MakeTcpBackend());
  auto connected =
      backend->Connect({Epoch(1), rank, kRanks, "127.0.0.1", "secret"}, keys, absl::Seconds(60));
  absl::Status status = connected.status();
  std::vector<float> data(elements, 1);
  while (status.ok()) {
    status = (*connected)
                 ->AllReduce(data.data(), data.data(), data.size(), DataType::kFloat32,
                             ReduceOp::kMax, kPatient);
    each();
  }
  return status;
}

bool NamesTheLost(const absl::Status& status, int lost) {
  const std::string text(status.message());
  // Ranks that have failed because of the lost one may be named beside it.
  const std::string number = std::to_string(lost);
  return absl::IsUnavailable(status) &&
         (text.find("rank " + number) != std::string::npos ||
          text.find(", " + number + " is gone") != std::string::npos);
}

struct Crash {
  int killed;
  size_t elements;
};
class HierarchicalCrashTest : public testing::TestWithParam<Crash> {};

TEST_P(HierarchicalCrashTest, KilledRank_IsNamedByAllOthersLongBeforeTheTimeout) {
  const Crash crash = GetParam();
  ForkedKeyExchange keys(kRanks);
  pid_t children[kRanks] = {};
  for (int rank = 1; rank < kRanks; ++rank) {
    children[rank] = fork();  // no threads yet: each test of this file runs in a separate process
    if (children[rank] != 0) continue;
    const absl::Status status = ReduceUntilFailure(keys, rank, crash.elements, [] {});
    if (!NamesTheLost(status, crash.killed)) ADD_FAILURE() << "rank " << rank << ": " << status;
    _exit(NamesTheLost(status, crash.killed) ? 0 : 1);
  }
  int calls = 0;
  const absl::Status status = ReduceUntilFailure(keys, 0, crash.elements, [&] {
    if (++calls == 3) kill(children[crash.killed], SIGKILL);
  });
  EXPECT_TRUE(NamesTheLost(status, crash.killed)) << status;
  for (int rank = 1; rank < kRanks; ++rank) {
    int code = -1;
    waitpid(children[rank], &code, 0);
    EXPECT_TRUE(rank == crash.killed || code == 0) << "rank " << rank << ", code " << code;
  }
}

INSTANTIATE_TEST_SUITE_P(Crashes, HierarchicalCrashTest,
                         testing::Values(Crash{1, 1}, Crash{3, 1}, Crash{1, 1 << 20},
                                         Crash{3, 1 << 20}, Crash{2, 1 << 20}));

}  // namespace
}  // namespace hvd::collectives::hierarchical
