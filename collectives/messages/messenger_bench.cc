// The speed of messages between two processes: a small one there and back, and large ones one way.
//   bazel run -c opt //collectives/messages:messenger_bench
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex_checks.h"
#include "base/status_macros.h"
#include "collectives/conformance/forked_key_exchange.h"
#include "collectives/messages/messenger.h"
#include "collectives/messages/messenger_group_testing.h"

namespace hvd::collectives::messages {
namespace {

absl::Status Send(Messenger& messenger, int peer, const std::vector<char>& data) {
  return Await(messenger, messenger.Send(peer, {1, 0}, data.data(), data.size()));
}

absl::Status Receive(Messenger& messenger, int peer, std::vector<char>& data) {
  return Await(messenger, messenger.Receive(peer, {1, 0}, data.data(), data.size()));
}

absl::Status PingPong(Messenger& messenger, int rank, size_t bytes, int rounds) {
  std::vector<char> out(bytes, 'o'), in(bytes, 'i');
  std::vector<double> microseconds;
  for (int i = 0; i < rounds; ++i) {
    const absl::Time start = Clock::Real().Now();
    if (rank == 0) RETURN_IF_ERROR(Send(messenger, 1, out));
    RETURN_IF_ERROR(Receive(messenger, 1 - rank, in));
    if (rank == 1) RETURN_IF_ERROR(Send(messenger, 0, out));
    microseconds.push_back(absl::ToDoubleMicroseconds(Clock::Real().Now() - start) / 2);
  }
  std::sort(microseconds.begin(), microseconds.end());
  if (rank == 0) {
    std::printf("  %8zu B one way: median %8.2f us, 10%% %8.2f us, 90%% %8.2f us\n", bytes,
                microseconds[rounds / 2], microseconds[rounds / 10], microseconds[rounds * 9 / 10]);
  }
  return absl::OkStatus();
}

absl::Status Stream(Messenger& messenger, int rank, size_t bytes, int messages) {
  std::vector<char> data(bytes, 'd');
  std::vector<char> end(1);
  absl::Time start;
  for (int i = -2; i < messages; ++i) {
    if (i == 0) start = Clock::Real().Now();
    RETURN_IF_ERROR(rank == 0 ? Send(messenger, 1, data) : Receive(messenger, 0, data));
  }
  RETURN_IF_ERROR(rank == 0 ? Receive(messenger, 1, end) : Send(messenger, 0, end));
  const double seconds = absl::ToDoubleSeconds(Clock::Real().Now() - start);
  if (rank == 0) {
    std::printf("  %8zu B, one after the other: %6.2f GB/s\n", bytes,
                static_cast<double>(bytes) * messages / seconds / 1e9);
  }
  return absl::OkStatus();
}

// On a core of its own: two ranks that look for each other's messages may get the same one.
void Pin(int rank) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(rank, &cores);
  sched_setaffinity(0, sizeof(cores), &cores);
}

absl::Status Bench(int rank, KeyExchange& keys, const std::string& host) {
  SwitchOffMutexChecks();
  Pin(rank);
  ASSIGN_OR_RETURN(const std::unique_ptr<Messenger> messenger,
                   Messenger::Connect({Epoch(1), rank, 2, "127.0.0.1", "secret"}, keys,
                                      absl::Seconds(30), host));
  RETURN_IF_ERROR(PingPong(*messenger, rank, 4, 20000));
  RETURN_IF_ERROR(PingPong(*messenger, rank, 4096, 10000));
  RETURN_IF_ERROR(PingPong(*messenger, rank, size_t{64} << 10, 3000));
  RETURN_IF_ERROR(PingPong(*messenger, rank, size_t{1} << 20, 500));
  RETURN_IF_ERROR(Stream(*messenger, rank, size_t{64} << 20, 20));
  return PingPong(*messenger, rank, 4, 10);  // so that neither leaves while the other waits
}

int Main() {
  for (const char* const host : {"one", ""}) {
    conformance::ForkedKeyExchange keys(2);
    std::printf("%s\n", *host == '\0' ? "loopback TCP" : "within a host");
    std::fflush(stdout);
    const pid_t first = fork();
    if (first == 0) {
      const pid_t child = fork();
      const int rank = child == 0 ? 1 : 0;
      keys.set_rank(rank);
      const absl::Status status = Bench(rank, keys, host);
      if (!status.ok()) std::fprintf(stderr, "rank %d: %s\n", rank, status.ToString().c_str());
      if (child > 0) waitpid(child, nullptr, 0);
      return status.ok() ? 0 : 1;
    }
    waitpid(first, nullptr, 0);
  }
  return 0;
}

}  // namespace
}  // namespace hvd::collectives::messages

int main() { return hvd::collectives::messages::Main(); }
