// The real libhvd_tensorflow.so and libhvd.so in a world of one rank, with a fake TensorFlow.
#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "frameworks/tensorflow/testing/fake_tensorflow.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker_runtime/api/hvd_c_api.h"

namespace hvd::frameworks::tensorflow {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kRuntime[] = "worker_runtime/api/libhvd.so";
constexpr char kOurs[] = "frameworks/tensorflow/libhvd_tensorflow.so";
constexpr char kTensorFlow[] = "frameworks/tensorflow/testing/libtensorflow_framework.so.2";

class LibraryTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto* const tensorflow = dlopen(kTensorFlow, RTLD_NOW | RTLD_LOCAL);
    auto* const runtime = dlopen(kRuntime, RTLD_NOW | RTLD_LOCAL);
    auto* const ours = dlopen(kOurs, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(tensorflow, nullptr) << dlerror();
    ASSERT_NE(runtime, nullptr) << dlerror();
    ASSERT_NE(ours, nullptr) << dlerror();
    run_node_ = Function<RunNodeFunction>(tensorflow, "fake_tensorflow_run_node");
    init_ = Function<decltype(hvd_init)>(runtime, "hvd_init");
    shutdown_ = Function<decltype(hvd_shutdown)>(runtime, "hvd_shutdown");
    let_kernels_wait_ = Function<void()>(ours, "hvd_tensorflow_wait");
    EXPECT_STREQ(Function<const char*()>(ours, "hvd_tensorflow_problem")(), "");
    EXPECT_STREQ(Function<const char*(const char*)>(ours, "hvd_tensorflow_use")(kRuntime), "");
  }

  void SetUp() override { ASSERT_EQ(init_(), HVD_OK); }
  void TearDown() override { EXPECT_EQ(shutdown_(), HVD_OK); }

  static std::future<Outcome> Start(const Node& node) {
    auto outcome = std::make_shared<std::promise<Outcome>>();
    std::future<Outcome> result = outcome->get_future();
    run_node_(node, [outcome](const Outcome& value) { outcome->set_value(value); });
    return result;
  }

  static Outcome Run(const Node& node) { return Start(node).get(); }

  template <typename Signature>
  static Signature* Function(void* library, const char* name) {
    return reinterpret_cast<Signature*>(dlsym(library, name));
  }

  inline static RunNodeFunction* run_node_ = nullptr;
  inline static void (*let_kernels_wait_)() = nullptr;
  inline static decltype(&hvd_init) init_ = nullptr;
  inline static decltype(&hvd_shutdown) shutdown_ = nullptr;
};

Node Sum(const std::string& name, std::vector<Value> inputs) {
  return {"HorovodAllreduce", name, {{"reduction", HVD_SUM}}, std::move(inputs)};
}

// The operations in turn. In a world of one rank the outputs equal the inputs.
Node NodeOf(int number, const std::string& name) {
  const Value value{false, {static_cast<float>(number), 2, 3}};
  const Value splits{true, {3}};
  switch (number % 5) {
    case 0:
      return Sum(name, {value});
    case 1:
      return Sum(name, {value, value, {false, {}}});
    case 2:
      return {"HorovodAllgather", name, {}, {value}};
    case 3:
      return {"HorovodAlltoall", name, {}, {value, splits}};
    default:
      return {"HorovodBroadcast", name, {{"waits", number % 2}}, {value}};
  }
}

TEST_F(LibraryTest, TenThousandOperations_OfFourThreads_LeaveNothingBehind) {
  constexpr int kThreads = 4, kEach = 2500, kAtOnce = 50;
  std::atomic<int> wrong{0};
  const auto run = [&wrong](int thread) {
    for (int first = 0; first < kEach; first += kAtOnce) {
      std::vector<Node> nodes;
      std::vector<std::future<Outcome>> outcomes;
      // The same name twice at once, from one thread or two.
      for (int i = first; i < first + kAtOnce; ++i) {
        nodes.push_back(NodeOf(thread + i, std::to_string((thread + i) % 5 + 5 * (i / 5 % 4))));
      }
      for (const Node& node : nodes) outcomes.push_back(Start(node));
      for (int i = 0; i < kAtOnce; ++i) {
        const Outcome outcome = outcomes[i].get();
        bool is_same = outcome.code == 0 && outcome.outputs.size() == nodes[i].inputs.size();
        for (size_t k = 0; is_same && k < outcome.outputs.size(); ++k) {
          is_same = outcome.outputs[k].elements == nodes[i].inputs[k].elements;
        }
        if (!is_same) ++wrong;
      }
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(run, i);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(LibraryTest, Join_OfTheOnlyRank_Returns) {
  const Outcome outcome = Run({"HorovodJoin", "join", {}, {}});
  EXPECT_EQ(outcome.code, 0) << outcome.message;
  EXPECT_THAT(outcome.outputs.at(0).elements, ElementsAre(0));
}

TEST_F(LibraryTest, ABadRequest_FailsAlone) {
  const Value value{false, {1, 2, 3}}, splits{true, {4}};
  const Outcome outcome = Run({"HorovodAlltoall", "a", {}, {value, splits}});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.message, HasSubstr("HorovodRequestError: alltoall splits add up to 4"));
  const Outcome other_root = Run({"HorovodBroadcast", "b", {{"root_rank", 1}}, {value}});
  EXPECT_NE(other_root.code, 0);
  EXPECT_EQ(Run(Sum("b", {value})).code, 0);
}

TEST_F(LibraryTest, OperationsAfterTheEnd_Fail) {
  ASSERT_EQ(shutdown_(), HVD_OK);
  const Outcome outcome = Run(Sum("late", {{false, {1}}}));
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.message, HasSubstr("HorovodInternalError"));
}

// Must be the last test: from here on all kernels block, as if the done callback were unknown.
TEST_F(LibraryTest, KernelsThatWait_EndOnTheirOwnThread) {
  let_kernels_wait_();
  for (int i = 0; i < 10; ++i) {
    std::future<Outcome> outcome = Start(NodeOf(i, "waits"));
    ASSERT_EQ(outcome.wait_for(std::chrono::seconds(0)), std::future_status::ready);
    EXPECT_EQ(outcome.get().code, 0);
  }
}

}  // namespace
}  // namespace hvd::frameworks::tensorflow
