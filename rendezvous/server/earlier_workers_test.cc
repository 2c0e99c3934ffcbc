#include "rendezvous/server/earlier_workers.h"

#include <variant>

#include "gtest/gtest.h"

namespace hvd::rendezvous::server {
namespace {

using membership::Event;
using membership::HostJoined;
using membership::WorkerExited;
using membership::WorkerStarted;

membership::Membership::AttachedHost Host(const std::string& name, uint64_t agent,
                                          const std::vector<uint64_t>& workers) {
  membership::Membership::AttachedHost host;
  host.host = {name, 2};
  host.agent = Incarnation(agent);
  for (const uint64_t worker : workers) {
    host.workers.push_back({WorkerId(worker), 0, static_cast<int64_t>(1000 + worker)});
  }
  return host;
}

Event Runs(uint64_t worker) { return WorkerStarted{WorkerId(worker), 7}; }

Event Ended(uint64_t worker) {
  WorkerExited exited;
  exited.worker = WorkerId(worker);
  return exited;
}

TEST(EarlierWorkersTest, Unknown_NamesThem) {
  EarlierWorkers earlier({Host("a", 1, {5}), Host("b", 2, {6, 7})});
  ASSERT_EQ(earlier.Unknown().size(), 3u);
  EXPECT_EQ(earlier.Unknown()[1].worker, WorkerId(6));
  EXPECT_EQ(earlier.Unknown()[1].host, "b");
  EXPECT_EQ(earlier.Unknown()[1].pid, 1006);
  EXPECT_TRUE(earlier.IsUnknown(WorkerId(7)));
  earlier.Say(WorkerId(7), Runs(7));
  EXPECT_FALSE(earlier.IsUnknown(WorkerId(7)));
}

TEST(EarlierWorkersTest, Begin_HostsWithoutWorkers_AreThereAtOnce) {
  EarlierWorkers earlier({Host("a", 1, {5}), Host("b", 2, {})});
  const std::vector<Event> due = earlier.Begin();
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(std::get<HostJoined>(due[0]).host.host, "b");
  EXPECT_EQ(std::get<HostJoined>(due[0]).agent, Incarnation(2));
  EXPECT_TRUE(earlier.Begin().empty()) << "once";
  EXPECT_EQ(earlier.Unknown().size(), 1u);
}

TEST(EarlierWorkersTest, Host_ReturnsWhenAllItsWorkersAreKnown_ThenAllThatWasSaid) {
  EarlierWorkers earlier({Host("a", 1, {5, 6, 8}), Host("b", 2, {7})});
  EXPECT_TRUE(earlier.Say(WorkerId(5), Runs(5))->empty());
  EXPECT_TRUE(earlier.Say(WorkerId(5), Ended(5))->empty()) << "it ended while others are awaited";
  EXPECT_TRUE(earlier.Say(WorkerId(8), std::nullopt)->empty());
  const auto due = earlier.Say(WorkerId(6), Runs(6));
  ASSERT_TRUE(due.has_value());
  ASSERT_EQ(due->size(), 4u);
  EXPECT_EQ(std::get<HostJoined>((*due)[0]).known_workers,
            (std::vector<WorkerId>{WorkerId(5), WorkerId(6)}))
      << "8 is to be started again";
  EXPECT_EQ(std::get<WorkerStarted>((*due)[1]).worker, WorkerId(5));
  EXPECT_EQ(std::get<WorkerExited>((*due)[2]).worker, WorkerId(5));
  EXPECT_EQ(std::get<WorkerStarted>((*due)[3]).worker, WorkerId(6));
  EXPECT_EQ(earlier.Unknown().size(), 1u);
}

TEST(EarlierWorkersTest, OtherWorkers_AreNotAwaited) {
  EarlierWorkers earlier({Host("a", 1, {5})});
  EXPECT_FALSE(earlier.Say(WorkerId(9), Runs(9)).has_value());
  EXPECT_TRUE(earlier.Say(WorkerId(5), Runs(5)).has_value());
  EXPECT_FALSE(earlier.Say(WorkerId(5), Ended(5)).has_value()) << "its host is back";
}

}  // namespace
}  // namespace hvd::rendezvous::server
