// The engine's overhead on a communicator: a small all-reduce between two processes over Gloo, with
// and without it.
//   bazel run -c opt //worker_runtime/engine:engine_bench
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "base/task_thread.h"
#include "collectives/conformance/forked_key_exchange.h"
#include "collectives/peer/peer_port.h"
#include "collectives/tcp/tcp_backend.h"
#include "worker_runtime/engine/engine.h"

namespace hvd::worker_runtime::engine {
namespace {

constexpr char kAddress[] = "127.0.0.1";
constexpr absl::Duration kTimeout = absl::Seconds(30);

void Report(int rank, const char* what, const std::function<absl::Status()>& step) {
  constexpr int kWarmUp = 500, kSteps = 5000;
  std::vector<double> microseconds;
  for (int i = 0; i < kWarmUp + kSteps; ++i) {
    const absl::Time start = Clock::Real().Now();
    const absl::Status status = step();
    if (!status.ok()) {
      std::fprintf(stderr, "%s\n", status.ToString().c_str());
      return;
    }
    if (i >= kWarmUp) {
      microseconds.push_back(absl::ToDoubleMicroseconds(Clock::Real().Now() - start));
    }
  }
  std::sort(microseconds.begin(), microseconds.end());
  if (rank != 0) return;
  std::printf("%-28s median %6.1f us, 10%% %6.1f us, 90%% %6.1f us\n", what,
              microseconds[kSteps / 2], microseconds[kSteps / 10], microseconds[kSteps * 9 / 10]);
}

TensorRequest RequestOf(std::vector<float>& data) {
  TensorRequest request;
  request.name = "x";
  request.shape = {static_cast<int64_t>(data.size())};
  request.input = request.output = data.data();
  request.reduction = negotiation::Reduction::kMax;
  return request;
}

absl::Status Bench(int rank, collectives::KeyExchange& keys,
                   std::shared_ptr<collectives::peer::PeerPort> root) {
  collectives::GroupInfo group{Epoch(1), rank, 2, kAddress, "secret"};
  const std::unique_ptr<collectives::Backend> backend = collectives::tcp::MakeTcpBackend();
  ASSIGN_OR_RETURN(const auto communicator, backend->Connect(group, keys, kTimeout));
  float data = 1;
  Report(rank, "4 B, bare communicator:", [&] {
    return communicator->AllReduce(&data, &data, 1, collectives::DataType::kFloat32,
                                   collectives::ReduceOp::kMax, {});
  });
  if (rank == 0) group.port = root;
  ASSIGN_OR_RETURN(auto control,
                   control::ControlChannel::Connect(group, kAddress, root->number(), kTimeout));
  const auto engine = Engine::Start({}, *communicator, std::move(control));
  TaskThread callbacks;
  for (const auto& [bytes, size] : {std::pair("4 B", 1), std::pair("1 MB", 1 << 18)}) {
    std::vector<float> data(size, 1);
    std::vector<negotiation::SignaturePtr> signatures;
    std::vector<TensorMemory> memory;
    SplitRequests({RequestOf(data)}, signatures, memory);
    Report(rank, absl::StrCat(bytes, ", submit and wait:").c_str(), [&]() -> absl::Status {
      ASSIGN_OR_RETURN(const Engine::Handle handle, engine->Submit(signatures, memory, false));
      return engine->Wait(handle);
    });
    Report(rank, absl::StrCat(bytes, ", by callback:").c_str(), [&]() -> absl::Status {
      Completion called;
      RETURN_IF_ERROR(engine->SubmitThen(
          signatures, memory, [&](Engine::Handle) { callbacks.Add([&] { called.Notify(); }); }));
      called.Wait();
      callbacks.Drain();  // Notify may still use it
      return absl::OkStatus();
    });
  }
  engine->Shutdown();
  return absl::OkStatus();
}

int Main() {
  collectives::conformance::ForkedKeyExchange keys(2);
  const auto root = collectives::peer::PeerPort::Open(kAddress);
  if (!root.ok()) return 1;
  const pid_t child = fork();
  const int rank = child == 0 ? 1 : 0;
  keys.set_rank(rank);
  const absl::Status status = Bench(rank, keys, *root);
  if (!status.ok()) std::fprintf(stderr, "rank %d: %s\n", rank, status.ToString().c_str());
  if (child > 0) waitpid(child, nullptr, 0);
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace hvd::worker_runtime::engine

int main() { return hvd::worker_runtime::engine::Main(); }
