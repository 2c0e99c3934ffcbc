// Tests of operations with large announcements: they work, or only they fail.
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker_runtime/engine/engine_test_util.h"
#include "worker_runtime/negotiation/message_sizes.h"

namespace hvd::worker_runtime::engine {
namespace {

using testing::HasSubstr;

constexpr size_t kLarge = size_t{4} << 20;

// Names of `bytes` bytes that differ by their number.
std::string LongName(int number, size_t bytes = kLarge) {
  std::string name(bytes, 'n');
  return name.replace(0, 8, absl::StrCat(10000000 + number));
}

std::vector<TensorRequest> LongNamed(std::vector<float>& data, int count) {
  std::vector<TensorRequest> group;
  for (int i = 0; i < count; ++i) group.push_back(AllReduceOf(LongName(i), data));
  return group;
}

void ExpectWorks(Engine& engine, const std::string& name, int size) {
  std::vector<float> data(1, 1);
  EXPECT_EQ(RunOn(engine, {AllReduceOf(name, data)}), absl::OkStatus());
  EXPECT_EQ(data[0], static_cast<float>(size));
}

TEST(EngineSizesTest, GroupOfMoreThanAFrame_Works) {
  TestWorld world(2);
  world.OnEach([&](int rank, Engine& engine) {
    std::vector<std::vector<float>> data(5, std::vector<float>(1, 1));
    std::vector<TensorRequest> group;
    for (int i = 0; i < 5; ++i) group.push_back(AllReduceOf(LongName(i), data[i]));
    EXPECT_EQ(RunOn(engine, group), absl::OkStatus());
    for (const auto& each : data) EXPECT_EQ(each[0], 2);
    ExpectWorks(engine, "after", 2);
  });
}

TEST(EngineSizesTest, SinglesOfMoreThanAFrame_Work) {
  EngineOptions options;
  options.gather_time = absl::Seconds(60);  // so that all go at once
  TestWorld world(2, options);
  world.OnEach([&](int rank, Engine& engine) {
    std::vector<std::vector<float>> data(6, std::vector<float>(1, 1));
    std::vector<Engine::Handle> handles;
    for (int i = 0; i < 6; ++i) {
      auto handle = engine.Submit({AllReduceOf(LongName(i), data[i])});
      ASSERT_TRUE(handle.ok()) << handle.status();
      handles.push_back(*handle);
    }
    for (const Engine::Handle& handle : handles) EXPECT_EQ(engine.Wait(handle), absl::OkStatus());
    for (const auto& each : data) EXPECT_EQ(each[0], 2);
  });
}

TEST(EngineSizesTest, TooMuch_IsRefusedAtOnce_AndTheWorldGoesOn) {
  TestWorld world(2);
  world.OnEach([&](int rank, Engine& engine) {
    std::vector<float> data(1, 1);
    const absl::Status name = RunOn(engine, {AllReduceOf(LongName(0, kMostNameBytes + 1), data)});
    EXPECT_EQ(name, absl::InvalidArgumentError(
                        "a name of 8388609 bytes is too long: the limit is 8388608"));
    const auto group = LongNamed(data, static_cast<int>(negotiation::kMostOperationBytes / kLarge));
    const absl::Status all = RunOn(engine, group);
    EXPECT_EQ(all.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(all.message()), HasSubstr("an operation of 16 tensors takes "));
    ExpectWorks(engine, "after", 2);
  });
}

TEST(EngineSizesTest, MismatchOfMuch_FailsOnlyThat) {
  TestWorld world(2);
  world.OnEach([&](int rank, Engine& engine) {
    std::vector<float> data(rank + 1, 1);
    EXPECT_EQ(RunOn(engine, LongNamed(data, 5)).code(), absl::StatusCode::kInvalidArgument);
    ExpectWorks(engine, "after", 2);
  });
}

}  // namespace
}  // namespace hvd::worker_runtime::engine
