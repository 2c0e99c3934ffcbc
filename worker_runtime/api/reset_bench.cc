// The cost of a new world for the survivors: the time from the news that the epoch is broken until
// the next world is connected on all ranks, over loopback and without a daemon's part.
//   bazel run -c opt //worker_runtime/api:reset_bench -- [RANKS]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/settings/runtime_env.h"
#include "collectives/tcp/tcp_backend.h"
#include "worker_runtime/api/runtime.h"
#include "worker_runtime/api/testing/fake_daemon.h"

namespace hvd::worker_runtime::api {
namespace {

using Workers = std::vector<std::unique_ptr<Runtime>>;

// Returns the milliseconds until all ranks have finished.
double Time(Workers& workers, absl::Status (Runtime::*step)()) {
  const absl::Time start = Clock::Real().Now();
  std::vector<std::thread> threads;
  for (auto& worker : workers) {
    threads.emplace_back([&] {
      const absl::Status status = (worker.get()->*step)();
      if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
    });
  }
  for (std::thread& thread : threads) thread.join();
  return absl::ToDoubleMilliseconds(Clock::Real().Now() - start);
}

void Run(int size) {
  constexpr int kRounds = 200;
  FakeDaemon daemon(size);
  Workers workers;
  for (int i = 0; i < size; ++i) {
    const session::WorkerStanding standing{WorkerId(i + 1), "127.0.0.1", true,
                                           absl::ZeroDuration()};
    workers.push_back(std::make_unique<Runtime>(
        settings::RuntimeEnv(),
        std::make_shared<session::Session>(standing, Incarnation(1), daemon.NewClients()),
        collectives::tcp::MakeTcpBackend()));
  }
  Time(workers, &Runtime::Init);
  for (const bool planned : {false, true}) {
    std::vector<double> times;
    for (int i = 0; i < kRounds; ++i) {
      if (planned) {
        daemon.Change("bench");
      } else {
        daemon.Break("bench");
      }
      times.push_back(Time(workers, &Runtime::Reset));
    }
    std::sort(times.begin(), times.end());
    std::printf("%d ranks, %s: median %.2f ms, 95%% %.2f ms, most %.2f ms\n", size,
                planned ? "planned change" : "broken epoch", times[kRounds / 2],
                times[kRounds * 95 / 100], times.back());
  }
}

}  // namespace
}  // namespace hvd::worker_runtime::api

int main(int argc, char** argv) {
  hvd::worker_runtime::api::Run(argc > 1 ? std::atoi(argv[1]) : 2);
}
