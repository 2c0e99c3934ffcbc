// The death of a rank in a separate process, in the middle of messages.
#include <pthread.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "collectives/messages/messenger_group_testing.h"
#include "gtest/gtest.h"

namespace hvd::collectives::messages {
namespace {

constexpr int kRanks = 3;
constexpr int kVictim = 2;
constexpr size_t kLarge = size_t{64} << 20;

// What the processes share.
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

  absl::StatusOr<std::vector<std::string>> AllGather(absl::string_view, absl::string_view value,
                                                     absl::Duration) override {
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

std::unique_ptr<Messenger> Connect(Shared& shared, int rank, const HostOf& host_of) {
  SharedExchange keys(shared, rank);
  auto connected = Messenger::Connect({Epoch(1), rank, kRanks, "127.0.0.1", "secret"}, keys,
                                      absl::Seconds(60), host_of(rank));
  if (!connected.ok()) ADD_FAILURE() << connected.status();
  return connected.ok() ? *std::move(connected) : nullptr;
}

// Exchanges large messages with `peer` until one fails.
absl::Status WorkUntilFailure(Messenger& messenger, int peer) {
  const std::string sent(kLarge, 's');
  std::string got(kLarge, 'r');
  while (true) {
    const auto send = messenger.Send(peer, {1, 0}, sent.data(), sent.size());
    const auto receive = messenger.Receive(peer, {1, 0}, &got[0], got.size());
    const absl::Status received = Await(messenger, receive), status = Await(messenger, send);
    if (!received.ok()) return received;
    if (!status.ok()) return status;
  }
}

struct Crash {
  const char* name;
  HostOf host_of;
};
std::ostream& operator<<(std::ostream& out, const Crash& crash) { return out << crash.name; }
class MessengerCrashTest : public testing::TestWithParam<Crash> {};

// Rank 1 never talks with the one that dies: it learns of the death itself, or from rank 0.
[[noreturn]] void RunChild(Shared& shared, int rank, const HostOf& host_of) {
  const auto messenger = Connect(shared, rank, host_of);
  char word = 0;
  if (rank == kVictim) {
    Await(*messenger, messenger->Receive(0, {2, 0}, &word, 1)).IgnoreError();
    Await(*messenger, messenger->Send(0, {2, 0}, &word, 1)).IgnoreError();
    WorkUntilFailure(*messenger, 0).IgnoreError();
  }
  absl::Status status = Await(*messenger, messenger->Receive(0, {1, 0}, &word, 1));
  if (status.ok()) status = Await(*messenger, messenger->Receive(0, {2, 0}, &word, 1));
  if (!absl::IsUnavailable(status)) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  _exit(absl::IsUnavailable(status) ? 0 : 1);
}

TEST_P(MessengerCrashTest, KilledPeer_FailsItsTransfersAndBreaksTheMessenger) {
  Shared* const shared = MakeShared();
  ASSERT_NE(shared, nullptr);
  pid_t children[kRanks] = {};
  for (const int rank : {1, kVictim}) {
    children[rank] = fork();  // no threads yet: each test of this file runs in a separate process
    if (children[rank] == 0) RunChild(*shared, rank, GetParam().host_of);
  }
  const auto messenger = Connect(*shared, 0, GetParam().host_of);
  ASSERT_NE(messenger, nullptr);
  char word = 0;
  EXPECT_EQ(Await(*messenger, messenger->Send(1, {1, 0}, &word, 1)), absl::OkStatus());
  // The first messages have connected the two; then it dies at some moment of a later one.
  for (const auto& transfer : {messenger->Send(kVictim, {2, 0}, &word, 1),
                               messenger->Receive(kVictim, {2, 0}, &word, 1)}) {
    EXPECT_EQ(Await(*messenger, transfer), absl::OkStatus());
  }
  itimerval timer = {};
  timer.it_value.tv_usec = 1000 + static_cast<int>(std::random_device()() % 100000);
  static pid_t victim;
  victim = children[kVictim];
  signal(SIGALRM, [](int) { kill(victim, SIGKILL); });
  setitimer(ITIMER_REAL, &timer, nullptr);
  const absl::Status status = WorkUntilFailure(*messenger, kVictim);
  EXPECT_EQ(status, absl::UnavailableError("rank 2 is gone: its process has ended"));
  const auto next = messenger->Receive(kAnySource, {1, 0}, &word, 1);
  EXPECT_EQ(Await(*messenger, next), status);
  int code = -1;
  waitpid(children[1], &code, 0);
  EXPECT_EQ(code, 0);
  waitpid(children[kVictim], &code, 0);
  munmap(shared, sizeof(Shared));
}

INSTANTIATE_TEST_SUITE_P(Placements, MessengerCrashTest,
                         testing::Values(Crash{"OneHost", OneHost}, Crash{"Apart", Apart},
                                         Crash{"Pairs", Pairs}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace hvd::collectives::messages
