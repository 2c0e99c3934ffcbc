// Timelines of workers, from the first order to the next world.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/settings/runtime_env.h"
#include "collectives/inproc/inproc_backend.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker_runtime/api/runtime.h"
#include "worker_runtime/api/testing/runtime_fixture.h"
#include "worker_runtime/timeline/timeline_test_util.h"

namespace hvd::worker_runtime::api {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string Read(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void Reduce(Runtime& worker, const std::string& name) {
  std::vector<float> data{1};
  EXPECT_EQ(RunOn(worker, Request(negotiation::OpKind::kAllReduce, name, &data)), absl::OkStatus());
}

class WorldTimelineTest : public WorkersTest {
 protected:
  WorldTimelineTest() {
    env_.timeline = std::string(settings::kDynamicTimeline);
    for (uint64_t id : {kFirstWorker, kFirstWorker + 1}) workers_.push_back(NewWorker(id));
  }

  const std::string path_ = ::testing::TempDir() + "world.json";
};

TEST_F(WorldTimelineTest, StartTimeline_AtRunTime_GoesOnInTheNextWorld) {
  OnEach([this](int, Runtime& worker) {
    ASSERT_EQ(worker.Init(), absl::OkStatus());
    EXPECT_EQ(worker.StartTimeline(path_, false), absl::OkStatus());
    Reduce(worker, "first");  // rank 0's comes after its order
  });
  daemon_.Break("the test wants another world");
  OnEach([](int, Runtime& worker) {
    ASSERT_EQ(worker.Reset(), absl::OkStatus());
    Reduce(worker, "second");
    EXPECT_EQ(worker.StopTimeline(), absl::OkStatus());
  });
  const std::string other = ::testing::TempDir() + "exactly.json";
  EXPECT_EQ(workers_[0]->StartTimeline(other, false), absl::OkStatus());
  EXPECT_EQ(workers_[0]->StopTimeline(), absl::OkStatus());
  EXPECT_THAT(timeline::ParseTrace(Read(other)), Not(IsEmpty()));
  OnEach([](int, Runtime& worker) {
    Reduce(worker, "third");
    EXPECT_EQ(worker.Shutdown(), absl::OkStatus());
  });
  const std::string first = Read(path_), second = Read(::testing::TempDir() + "world.epoch2.json");
  EXPECT_THAT(timeline::ParseTrace(first), Not(IsEmpty()));
  EXPECT_THAT(first, HasSubstr("\"names\":[\"first\"]"));
  EXPECT_THAT(first, Not(HasSubstr("second")));
  EXPECT_THAT(timeline::ParseTrace(second), Not(IsEmpty()));
  EXPECT_THAT(second, HasSubstr("\"names\":[\"second\"]"));
  EXPECT_THAT(second, Not(HasSubstr("third")));
}

TEST_F(WorldTimelineTest, OrderOfRank0_WithoutTheVariable_IsNotForTheNextWorld) {
  env_.timeline.clear();
  workers_[1] = NewWorker(kFirstWorker + 1);
  const std::string path = ::testing::TempDir() + "ordered.json";
  OnEach([&](int rank, Runtime& worker) {
    ASSERT_EQ(worker.Init(), absl::OkStatus());
    if (rank == 0) {
      ASSERT_EQ(worker.StartTimeline(path, false), absl::OkStatus());
    }
    Reduce(worker, "first");
  });
  daemon_.SetSize(1);
  daemon_.Break("rank 0 is lost");
  ASSERT_EQ(workers_[1]->Reset(), absl::OkStatus());
  Reduce(*workers_[1], "second");
  EXPECT_EQ(workers_[1]->Shutdown(), absl::OkStatus());
  EXPECT_FALSE(std::filesystem::exists(::testing::TempDir() + "ordered.epoch2.json"));
}

// What rank 0 has ordered comes over the network: only that there is a timeline counts.
TEST_F(WorldTimelineTest, OrderOfRank0_NamesNoFileOfAnotherProcess) {
  const std::string of_rank0 = ::testing::TempDir() + "rank0.json";
  const std::string own = ::testing::TempDir() + "own.json";
  OnEach([&](int rank, Runtime& worker) {
    ASSERT_EQ(worker.Init(), absl::OkStatus());
    ASSERT_EQ(worker.StartTimeline(rank == 0 ? of_rank0 : own, false), absl::OkStatus());
    Reduce(worker, "first");
  });
  daemon_.SetSize(1);
  daemon_.Break("rank 0 is lost");
  ASSERT_EQ(workers_[1]->Reset(), absl::OkStatus());
  Reduce(*workers_[1], "second");
  EXPECT_EQ(workers_[1]->Shutdown(), absl::OkStatus());
  EXPECT_FALSE(std::filesystem::exists(::testing::TempDir() + "rank0.epoch2.json"));
  EXPECT_THAT(Read(::testing::TempDir() + "own.epoch2.json"), HasSubstr("\"names\":[\"second\"]"));
}

TEST_F(WorldTimelineTest, StartTimeline_WithoutAWorldOrTheVariable_Fails) {
  Runtime worker(settings::RuntimeEnv(), nullptr, collectives::inproc::MakeInprocBackend());
  EXPECT_EQ(worker.StartTimeline(path_, false).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(worker.StopTimeline().code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_EQ(worker.Init(), absl::OkStatus());
  const absl::Status status = worker.StartTimeline(path_, false);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("HOROVOD_TIMELINE was not set"));
  EXPECT_EQ(worker.StopTimeline(), absl::OkStatus());
}

TEST_F(WorldTimelineTest, Init_WithFilesThatCannotBeWritten_SaysSoAndGoesOn) {
  settings::RuntimeEnv env;
  env.timeline = "/nowhere/at/all.json";
  env.autotune.enabled = true;
  env.autotune.log = "/nowhere/log.csv";
  daemon_.SetSize(1);
  const session::WorkerStanding standing{WorkerId(20), "127.0.0.1", /*elastic=*/true,
                                         absl::Seconds(1)};
  Runtime worker(
      env, std::make_shared<session::Session>(standing, Incarnation(20), daemon_.NewClients()),
      collectives::inproc::MakeInprocBackend());
  testing::internal::CaptureStderr();
  EXPECT_EQ(worker.Init(), absl::OkStatus());
  const std::string said = testing::internal::GetCapturedStderr();
  const std::string why = "can't be written: No such file or directory";
  EXPECT_THAT(said, HasSubstr("error: the timeline's file '/nowhere/at/all.json' " + why));
  EXPECT_THAT(said, HasSubstr("error: HOROVOD_AUTOTUNE_LOG='/nowhere/log.csv' " + why));
}

TEST_F(WorldTimelineTest, Init_WithNotes_SaysThemOnce) {
  settings::RuntimeEnv env;
  env.notes = {"this has no meaning here"};
  Runtime worker(env, nullptr, collectives::inproc::MakeInprocBackend());
  testing::internal::CaptureStderr();
  ASSERT_EQ(worker.Init(), absl::OkStatus());
  ASSERT_EQ(worker.Reset(), absl::OkStatus());
  const std::string said = testing::internal::GetCapturedStderr();
  const size_t first = said.find("this has no meaning here");
  EXPECT_NE(first, std::string::npos);
  EXPECT_EQ(said.find("this has no meaning here", first + 1), std::string::npos);
}

TEST_F(WorldTimelineTest, Init_WithAutotune_WritesTheLog) {
  const std::string log = ::testing::TempDir() + "tuned.csv";
  settings::RuntimeEnv env;
  env.autotune = {true, log, /*warmup_samples=*/0, /*steps_per_sample=*/2, /*max_samples=*/3, 0.8};
  Runtime worker(env, nullptr, collectives::inproc::MakeInprocBackend());
  ASSERT_EQ(worker.Init(), absl::OkStatus());
  for (int step = 0; step < 10; ++step) Reduce(worker, "x");
  EXPECT_EQ(worker.Shutdown(), absl::OkStatus());
  const std::string text = Read(log);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1 + 3 + 1) << text;
}

}  // namespace
}  // namespace hvd::worker_runtime::api
