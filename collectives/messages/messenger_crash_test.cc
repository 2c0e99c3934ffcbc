// The death of a rank in a separate process, in the middle of messages.
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "collectives/conformance/forked_key_exchange.h"
#include "collectives/messages/messenger_group_testing.h"
#include "gtest/gtest.h"

namespace hvd::collectives::messages {
namespace {

using conformance::ForkedKeyExchange;

constexpr int kRanks = 3;
constexpr int kVictim = 2;
constexpr size_t kLarge = size_t{64} << 20;

std::unique_ptr<Messenger> Connect(ForkedKeyExchange& keys, int rank, const HostOf& host_of) {
  keys.set_rank(rank);
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
[[noreturn]] void RunChild(ForkedKeyExchange& keys, int rank, const HostOf& host_of) {
  const auto messenger = Connect(keys, rank, host_of);
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
  ForkedKeyExchange keys(kRanks);
  pid_t children[kRanks] = {};
  for (const int rank : {1, kVictim}) {
    children[rank] = fork();  // no threads yet: each test of this file runs in a separate process
    if (children[rank] == 0) RunChild(keys, rank, GetParam().host_of);
  }
  const auto messenger = Connect(keys, 0, GetParam().host_of);
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
}

INSTANTIATE_TEST_SUITE_P(Placements, MessengerCrashTest,
                         testing::Values(Crash{"OneHost", OneHost}, Crash{"Apart", Apart},
                                         Crash{"Pairs", Pairs}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace hvd::collectives::messages
