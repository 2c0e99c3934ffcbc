// A fixture for tests of process sets: a world of threads.
#ifndef WORKER_RUNTIME_API_TESTING_PROCESS_SETS_FIXTURE_H_
#define WORKER_RUNTIME_API_TESTING_PROCESS_SETS_FIXTURE_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/settings/runtime_env.h"
#include "collectives/gloo/gloo_backend.h"
#include "gtest/gtest.h"
#include "worker_runtime/api/process_sets.h"
#include "worker_runtime/api/runtime.h"
#include "worker_runtime/api/testing/fake_daemon.h"

namespace hvd::worker_runtime::api {

inline engine::TensorRequest AllReduceOf(std::vector<float>& data, const std::string& name = "x") {
  engine::TensorRequest request;
  request.name = name;
  request.shape = {static_cast<int64_t>(data.size())};
  request.input = request.output = data.data();
  return request;
}

inline engine::TensorRequest Bare(negotiation::OpKind op) {
  engine::TensorRequest request;
  request.name = "bare";
  request.op = op;
  return request;
}

inline absl::Status RunOn(Runtime& worker, int32_t set, engine::TensorRequest request) {
  const auto handle = worker.Submit({std::move(request)}, set);
  if (!handle.ok()) return handle.status();
  const absl::Status status = worker.Wait(*handle);
  worker.Release(*handle);
  return status;
}

// The sum of the members' ranks of the world; -1 after an error.
inline float SumOfRanks(Runtime& worker, int32_t set) {
  std::vector<float> data{static_cast<float>(worker.place()->placement.rank)};
  const absl::Status status = RunOn(worker, set, AllReduceOf(data));
  EXPECT_EQ(status, absl::OkStatus());
  return status.ok() ? data[0] : -1;
}

inline absl::Status Add(Runtime& worker, std::vector<int> ranks, int32_t* id) {
  return worker.active()->process_sets().Add(std::move(ranks), id);
}

inline std::string Message(const absl::Status& status) { return std::string(status.message()); }

// A world of threads, with real connections.
class ProcessSetsTest : public ::testing::Test {
 protected:
  void Start(int size) {
    daemon_.SetSize(size);
    for (int i = 0; i < size; ++i) {
      const session::WorkerStanding standing{WorkerId(i + 10), "127.0.0.1", /*elastic=*/true,
                                             absl::Seconds(1)};
      workers_.push_back(std::make_unique<Runtime>(
          settings::RuntimeEnv(),
          std::make_shared<session::Session>(standing, Incarnation(i + 20), daemon_.NewClients()),
          collectives::gloo::MakeGlooBackend()));
    }
    OnEach([](int, Runtime& worker) { ASSERT_EQ(worker.Init(), absl::OkStatus()); });
  }

  void OnEach(const std::function<void(int, Runtime&)>& f) {
    std::vector<std::thread> threads;
    for (size_t i = 0; i < workers_.size(); ++i) {
      threads.emplace_back([&, i] { f(static_cast<int>(i), *workers_[i]); });
    }
    for (std::thread& thread : threads) thread.join();
  }

  // On all ranks; returns the id.
  int32_t AddOnAll(const std::vector<int>& ranks) {
    std::atomic<int32_t> result{0};
    OnEach([&](int, Runtime& worker) {
      int32_t id = 0;
      EXPECT_EQ(Add(worker, ranks, &id), absl::OkStatus());
      const int32_t before = result.exchange(id);
      EXPECT_TRUE(before == 0 || before == id);
    });
    return result;
  }

  FakeDaemon daemon_{1};
  std::vector<std::unique_ptr<Runtime>> workers_;
};

}  // namespace hvd::worker_runtime::api

#endif  // WORKER_RUNTIME_API_TESTING_PROCESS_SETS_FIXTURE_H_
