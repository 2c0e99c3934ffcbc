// A fixture for tests of process sets: a world of threads.
#ifndef WORKER_RUNTIME_API_TESTING_PROCESS_SETS_FIXTURE_H_
#define WORKER_RUNTIME_API_TESTING_PROCESS_SETS_FIXTURE_H_

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "worker_runtime/api/process_sets.h"
#include "worker_runtime/api/runtime.h"
#include "worker_runtime/api/testing/runtime_fixture.h"

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

// The sum of the members' ranks of the world; -1 after an error.
inline float SumOfRanks(Runtime& worker, int32_t set) {
  std::vector<float> data{static_cast<float>(worker.place()->rank)};
  const absl::Status status = RunOn(worker, AllReduceOf(data), set);
  EXPECT_EQ(status, absl::OkStatus());
  return status.ok() ? data[0] : -1;
}

inline absl::Status Add(Runtime& worker, std::vector<int> ranks, int32_t* id) {
  return worker.active()->process_sets().Add(std::move(ranks), id);
}

inline std::string Message(const absl::Status& status) { return std::string(status.message()); }

class ProcessSetsTest : public WorkersTest {
 protected:
  // Adds a set on all ranks; returns its id.
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
};

}  // namespace hvd::worker_runtime::api

#endif  // WORKER_RUNTIME_API_TESTING_PROCESS_SETS_FIXTURE_H_
