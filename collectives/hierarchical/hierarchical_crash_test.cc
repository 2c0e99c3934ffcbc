// The loss of a rank in a group of separate processes, two on each of two hosts: one is killed, and
// so sends no last message.
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "collectives/hierarchical/hierarchical_backend.h"
#include "collectives/shm/shm_backend.h"
#include "collectives/tcp/tcp_backend.h"
#include "gtest/gtest.h"

namespace hvd::collectives::hierarchical {
namespace {

constexpr int kRanks = 4;
const CallOptions kPatient = {absl::Seconds(60)};

// The state that the processes share.
struct Shared {
  pthread_barrier_t barrier;
  size_t lengths[kRanks];
  char values[kRanks][4096];
};

Shared* MakeShared() {
  void* const memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* const shared = static_cast<Shared*>(memory);
  pthread_barrierattr_t attributes;
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&shared->barrier, &attributes, kRanks);
  return shared;
}

class SharedExchange : public KeyExchange {
 public:
  SharedExchange(Shared& shared, int rank) : shared_(shared), rank_(rank) {}

  absl::StatusOr<std::vector<std::string>> AllGather(absl::string_view key, absl::string_view value,
                                                     absl::Duration timeout) override {
    if (value.size() > sizeof(shared_.values[0])) return absl::InternalError("a long value");
    shared_.lengths[rank_] = value.size();
    std::memcpy(shared_.values[rank_], value.data(), value.size());
    pthread_barrier_wait(&shared_.barrier);
    std::vector<std::string> all;
    for (int r = 0; r < kRanks; ++r) all.emplace_back(shared_.values[r], shared_.lengths[r]);
    pthread_barrier_wait(&shared_.barrier);
    return all;
  }

 private:
  Shared& shared_;
  const int rank_;
};

// Reduces until an operation fails; calls `each` after every operation.
template <typename F>
absl::Status ReduceUntilFailure(Shared& shared, int rank, size_t elements, F each) {
  SharedExchange keys(shared, rank);
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
  Shared* const shared = MakeShared();
  ASSERT_NE(shared, nullptr);
  pid_t children[kRanks] = {};
  for (int rank = 1; rank < kRanks; ++rank) {
    children[rank] = fork();  // no threads yet: each test of this file runs in a separate process
    if (children[rank] != 0) continue;
    const absl::Status status = ReduceUntilFailure(*shared, rank, crash.elements, [] {});
    if (!NamesTheLost(status, crash.killed)) ADD_FAILURE() << "rank " << rank << ": " << status;
    _exit(NamesTheLost(status, crash.killed) ? 0 : 1);
  }
  int calls = 0;
  const absl::Status status = ReduceUntilFailure(*shared, 0, crash.elements, [&] {
    if (++calls == 3) kill(children[crash.killed], SIGKILL);
  });
  EXPECT_TRUE(NamesTheLost(status, crash.killed)) << status;
  for (int rank = 1; rank < kRanks; ++rank) {
    int code = -1;
    waitpid(children[rank], &code, 0);
    EXPECT_TRUE(rank == crash.killed || code == 0) << "rank " << rank << ", code " << code;
  }
  munmap(shared, sizeof(Shared));
}

INSTANTIATE_TEST_SUITE_P(Crashes, HierarchicalCrashTest,
                         testing::Values(Crash{1, 1}, Crash{3, 1}, Crash{1, 1 << 20},
                                         Crash{3, 1 << 20}, Crash{2, 1 << 20}));

}  // namespace
}  // namespace hvd::collectives::hierarchical
