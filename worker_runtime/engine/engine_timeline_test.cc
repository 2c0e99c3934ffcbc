// Tests of the timeline in a world of engines.
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker_runtime/engine/engine.h"
#include "worker_runtime/engine/engine_test_util.h"
#include "worker_runtime/timeline/timeline_test_util.h"

namespace hvd::worker_runtime::engine {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

using Event = std::map<std::string, std::string>;

constexpr absl::Duration kPatience = absl::Minutes(1);

std::string Read(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class EngineTimelineTest : public ::testing::Test {
 protected:
  std::shared_ptr<timeline::TraceFile> Start(TestWorld& world, const std::string& path,
                                             bool mark_cycles = false) {
    const std::vector<std::string> hosts(world.size(), "host");
    auto file = timeline::TraceFile::Open(path, hosts, Clock::Real().Now());
    EXPECT_TRUE(file.ok()) << file.status();
    const std::shared_ptr<timeline::TraceFile> shared = *std::move(file);
    world.engine(0).OrderTimeline({0, true, mark_cycles}, shared);
    return shared;
  }
  void Stop(TestWorld& world) { world.engine(0).OrderTimeline({}, nullptr); }

  // Two fused all-reduces and a barrier. What is submitted after it is after all orders before it.
  void Train(TestWorld& world, const std::string& name) {
    world.OnEach([&](int, Engine& engine) {
      std::vector<float> a(10), b(10);
      EXPECT_TRUE(RunOn(engine, {Bare("before." + name, negotiation::OpKind::kBarrier)}).ok());
      EXPECT_TRUE(RunOn(engine, {AllReduceOf(name + ".a", a), AllReduceOf(name + ".b", b)}).ok());
      EXPECT_TRUE(RunOn(engine, {Bare("after." + name, negotiation::OpKind::kBarrier)}).ok());
    });
  }

  const std::string path_ = ::testing::TempDir() + "timeline.json";
};

// Returns the processes with such an event, one entry per event.
std::multiset<std::string> ProcessesOf(const std::vector<Event>& events, const std::string& name,
                                       const std::string& phase) {
  std::multiset<std::string> processes;
  for (const Event& event : events) {
    if (event.at("name") == name && event.at("ph") == phase) processes.insert(event.at("pid"));
  }
  return processes;
}

TEST_F(EngineTimelineTest, StartAndStop_AtRunTime_WriteWhatAllRanksDidBetween) {
  TestWorld world(3);
  Train(world, "unseen");
  const auto file = Start(world, path_);
  Train(world, "seen");
  Stop(world);
  ASSERT_EQ(file->AwaitClosed(kPatience), absl::OkStatus());
  Train(world, "too late");
  const std::vector<Event> events = timeline::ParseTrace(Read(path_));
  const auto everyone = UnorderedElementsAre("0", "1", "2");
  EXPECT_THAT(ProcessesOf(events, "ALLREDUCE", "X"), everyone);
  EXPECT_THAT(ProcessesOf(events, "INPROC_ALLREDUCE", "X"), everyone);
  EXPECT_THAT(ProcessesOf(events, "MEMCPY_IN_FUSION_BUFFER", "X"), everyone);
  EXPECT_THAT(ProcessesOf(events, "MEMCPY_OUT_FUSION_BUFFER", "X"), everyone);
  EXPECT_THAT(ProcessesOf(events, "TIMELINE_START", "i"), everyone);
  EXPECT_THAT(ProcessesOf(events, "NEGOTIATE_ALLREDUCE", "b"),
              UnorderedElementsAre("0", "0", "1", "1", "2", "2"));
  EXPECT_EQ(ProcessesOf(events, "NEGOTIATE_ALLREDUCE", "e"),
            ProcessesOf(events, "NEGOTIATE_ALLREDUCE", "b"));
  EXPECT_THAT(ProcessesOf(events, "LAST_EVENTS_MISSING", "i"), IsEmpty());
  EXPECT_THAT(ProcessesOf(events, "CYCLE_START", "i"), IsEmpty());
  const std::string text = Read(path_);
  EXPECT_THAT(text, ::testing::HasSubstr("\"names\":[\"seen.a\",\"seen.b\"]"));
  EXPECT_THAT(text, Not(::testing::HasSubstr("unseen.a")));
  EXPECT_THAT(text, Not(::testing::HasSubstr("too late")));
}

TEST_F(EngineTimelineTest, Shutdown_OfAllRanks_LosesNoEvents) {
  std::shared_ptr<timeline::TraceFile> file;
  {
    TestWorld world(3);
    file = Start(world, path_);
    Train(world, "seen");
  }
  ASSERT_EQ(file->AwaitClosed(kPatience), absl::OkStatus());
  const std::vector<Event> events = timeline::ParseTrace(Read(path_));
  EXPECT_THAT(ProcessesOf(events, "ALLREDUCE", "X"), UnorderedElementsAre("0", "1", "2"));
  EXPECT_THAT(ProcessesOf(events, "LAST_EVENTS_MISSING", "i"), IsEmpty());
}

TEST_F(EngineTimelineTest, Abort_LeavesAValidFile) {
  TestWorld world(2);
  const auto file = Start(world, path_);
  Train(world, "seen");
  world.engine(1).Abort(absl::UnavailableError("the test wants it"));
  ASSERT_EQ(file->AwaitClosed(kPatience), absl::OkStatus());
  const std::vector<Event> events = timeline::ParseTrace(Read(path_));
  EXPECT_THAT(ProcessesOf(events, "ALLREDUCE", "X"), Contains("0"));
}

TEST_F(EngineTimelineTest, SecondStart_ClosesTheFirstFile) {
  TestWorld world(2);
  const auto first = Start(world, path_);
  Train(world, "first");
  const std::string other = path_ + ".2";
  const auto second = Start(world, other, /*mark_cycles=*/true);
  ASSERT_EQ(first->AwaitClosed(kPatience), absl::OkStatus());
  Train(world, "second");
  Stop(world);
  ASSERT_EQ(second->AwaitClosed(kPatience), absl::OkStatus());
  const std::vector<Event> events = timeline::ParseTrace(Read(other));
  EXPECT_THAT(ProcessesOf(events, "ALLREDUCE", "X"), UnorderedElementsAre("0", "1"));
  EXPECT_THAT(ProcessesOf(events, "CYCLE_START", "i"), Contains("1"));
  EXPECT_THAT(Read(path_), Not(::testing::HasSubstr("second.a")));
}

TEST_F(EngineTimelineTest, OperationsOfAllRanks_OverlapInTime) {
  TestWorld world(2);
  const auto file = Start(world, path_);
  Train(world, "seen");
  Stop(world);
  ASSERT_EQ(file->AwaitClosed(kPatience), absl::OkStatus());
  // Ranks are threads here and have the same clock, and none can leave an all-reduce before all
  // are in it.
  std::vector<std::pair<double, double>> spans;
  for (const Event& event : timeline::ParseTrace(Read(path_))) {
    if (event.at("name") != "INPROC_ALLREDUCE") continue;
    const double begin = std::stod(event.at("ts"));
    spans.emplace_back(begin, begin + std::stod(event.at("dur")));
  }
  ASSERT_EQ(spans.size(), 2u);
  double uncertainty = 0;
  for (const Event& event : timeline::ParseTrace(Read(path_))) {
    if (event.at("name") != "TIMELINE_START") continue;
    const std::string key = "\"clock_uncertainty_us\":";
    const std::string& args = event.at("args");
    uncertainty = std::max(uncertainty, std::stod(args.substr(args.find(key) + key.size())));
  }
  EXPECT_LT(spans[0].first, spans[1].second + uncertainty);
  EXPECT_LT(spans[1].first, spans[0].second + uncertainty);
}

TEST_F(EngineTimelineTest, ManyOperations_AreAllThere) {
  TestWorld world(2);
  const auto file = Start(world, path_);
  constexpr int kOperations = 3000;
  world.OnEach([&](int, Engine& engine) {
    std::vector<float> data(4);
    EXPECT_TRUE(RunOn(engine, {Bare("first", negotiation::OpKind::kBarrier)}).ok());
    for (int i = 0; i < kOperations; ++i) {
      const auto handle = engine.Submit({AllReduceOf("x", data)});
      ASSERT_TRUE(handle.ok());
      EXPECT_TRUE(engine.Wait(*handle).ok());
    }
  });
  Stop(world);
  ASSERT_EQ(file->AwaitClosed(kPatience), absl::OkStatus());
  const std::vector<Event> events = timeline::ParseTrace(Read(path_));
  const auto processes = ProcessesOf(events, "ALLREDUCE", "X");
  EXPECT_EQ(processes.count("0"), static_cast<size_t>(kOperations));
  EXPECT_EQ(processes.count("1"), static_cast<size_t>(kOperations));
  EXPECT_THAT(ProcessesOf(events, "EVENTS_DROPPED", "i"), IsEmpty());
}

}  // namespace
}  // namespace hvd::worker_runtime::engine
