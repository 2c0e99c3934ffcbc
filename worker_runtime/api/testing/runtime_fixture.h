// A fixture that runs the workers of one elastic job in one process, with a fake daemon and real
// control and data connections.
#ifndef WORKER_RUNTIME_API_TESTING_RUNTIME_FIXTURE_H_
#define WORKER_RUNTIME_API_TESTING_RUNTIME_FIXTURE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/settings/runtime_env.h"
#include "collectives/tcp/tcp_backend.h"
#include "gtest/gtest.h"
#include "worker_runtime/api/runtime.h"
#include "worker_runtime/api/testing/fake_daemon.h"

namespace hvd::worker_runtime::api {

inline constexpr uint64_t kFirstWorker = 10;

// A request of an operation on floats, or, with a null `data`, of one without data.
inline engine::TensorRequest Request(negotiation::OpKind op, const std::string& name,
                                     std::vector<float>* data = nullptr) {
  engine::TensorRequest request;
  request.op = op;
  request.name = name;
  if (data == nullptr) return request;
  request.shape = {static_cast<int64_t>(data->size())};
  request.input = request.output = data->data();
  return request;
}

// Runs a request on a process set; 0: the world.
inline absl::Status RunOn(Runtime& worker, engine::TensorRequest request, int32_t process_set = 0,
                          bool* world_is_changing = nullptr) {
  const auto handle = worker.Submit({std::move(request)}, process_set);
  if (!handle.ok()) return handle.status();
  const absl::Status status = worker.Wait(*handle);
  if (status.ok() && world_is_changing != nullptr) {
    *world_is_changing = (*worker.Results(*handle))->front().world_is_changing;
  }
  worker.Release(*handle);
  return status;
}

class WorkersTest : public ::testing::Test {
 protected:
  std::shared_ptr<session::Session> NewSession(uint64_t id) {
    const session::WorkerStanding standing{WorkerId(id), "127.0.0.1", /*elastic=*/true,
                                           absl::Seconds(1)};
    return std::make_shared<session::Session>(standing, Incarnation(id), daemon_.NewClients());
  }

  std::unique_ptr<Runtime> NewWorker(uint64_t id) {
    return std::make_unique<Runtime>(env_, NewSession(id), collectives::tcp::MakeTcpBackend());
  }

  // Calls f for the first `count` workers, each in a separate thread. Creates missing workers.
  void OnEach(size_t count, const std::function<void(int, Runtime&)>& f) {
    while (workers_.size() < count) workers_.push_back(NewWorker(kFirstWorker + workers_.size()));
    std::vector<std::thread> threads;
    for (size_t i = 0; i < count; ++i) {
      threads.emplace_back([&, i] { f(static_cast<int>(i), *workers_[i]); });
    }
    for (std::thread& thread : threads) thread.join();
  }
  // Calls f for all workers created so far.
  void OnEach(const std::function<void(int, Runtime&)>& f) { OnEach(workers_.size(), f); }

  // Initializes `count` workers, which form one world.
  void StartWorkers(int count) {
    daemon_.SetSize(count);
    OnEach(count, [](int, Runtime& worker) { ASSERT_EQ(worker.Init(), absl::OkStatus()); });
  }

  settings::RuntimeEnv env_;
  FakeDaemon daemon_{2};
  std::vector<std::unique_ptr<Runtime>> workers_;
};

}  // namespace hvd::worker_runtime::api

#endif  // WORKER_RUNTIME_API_TESTING_RUNTIME_FIXTURE_H_
