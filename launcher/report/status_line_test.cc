#include "launcher/report/status_line.h"

#include "gtest/gtest.h"

namespace hvd::launcher::report {
namespace {

using rendezvous::lifecycle::JobState;
using rendezvous::lifecycle::WorkerState;

const absl::Time kNow = absl::FromUnixSeconds(1000);

using View = rendezvous::membership::Membership::View;

void Add(View& view, const std::string& host,
         const std::vector<std::pair<int, WorkerState>>& ranks_and_states,
         const std::string& condition = "") {
  rendezvous::membership::Membership::HostView added;
  added.host = {host, 4};
  added.condition = condition;
  for (const auto& [rank, state] : ranks_and_states) {
    rendezvous::membership::Membership::WorkerView worker;
    worker.rank = rank;
    worker.state = state;
    added.workers.push_back(worker);
  }
  view.hosts.push_back(added);
}

View Running() {
  View view;
  view.state = JobState::kRunning;
  view.explanation = "3 ranks run in world 7";
  view.epoch = Epoch(7);
  view.failures_left = 20;
  Add(view, "a", {{0, WorkerState::kRunning}, {1, WorkerState::kRunning}});
  Add(view, "b", {{2, WorkerState::kRunning}});
  return view;
}

TEST(StatusLine, Running_CountsWorkersAndHosts) {
  const StatusLine line = MakeStatusLine(Running(), kNow);
  EXPECT_EQ(line.text, "world 7 | 3 workers on 2 hosts");
  EXPECT_TRUE(line.settled);
}

TEST(StatusLine, Running_OneOfEach_HasNoPlural) {
  View view;
  view.state = JobState::kRunning;
  view.epoch = Epoch(1);
  view.failures = 1;
  Add(view, "a", {{0, WorkerState::kRunning}});
  EXPECT_EQ(MakeStatusLine(view, kNow).text, "world 1 | 1 worker on 1 host | 1 failure (0 left)");
}

TEST(StatusLine, Running_OthersAreNoMembers) {
  View view = Running();
  Add(view, "c",
      {{-1, WorkerState::kStarting},
       {-1, WorkerState::kJoining},
       {3, WorkerState::kLeaving},
       {3, WorkerState::kFailed}});
  view.failures = 2;
  view.failures_left = 18;
  const StatusLine line = MakeStatusLine(view, kNow);
  EXPECT_EQ(line.text,
            "world 7 | 3 workers on 2 hosts | 1 starting | 1 ready to join | 1 leaving | "
            "2 failures (18 left)");
  EXPECT_FALSE(line.settled);
}

TEST(StatusLine, Running_MemberThatAsksForTheNextWorld_IsStillOne) {
  View view = Running();
  view.hosts[1].workers[0].state = WorkerState::kJoining;
  const StatusLine line = MakeStatusLine(view, kNow);
  EXPECT_EQ(line.text, "world 7 | 3 workers on 2 hosts");
  EXPECT_FALSE(line.settled);
}

TEST(StatusLine, Running_TroublesOfHostsComeLast) {
  View view = Running();
  view.hosts[1].condition = "draining: spot instance";
  EXPECT_EQ(MakeStatusLine(view, kNow).text,
            "world 7 | 3 workers on 2 hosts | b: draining: spot instance");
  EXPECT_FALSE(MakeStatusLine(view, kNow).settled);
  Add(view, "c", {}, "2 slots resting after failures");
  EXPECT_EQ(MakeStatusLine(view, kNow).text,
            "world 7 | 3 workers on 2 hosts | b: draining: spot instance (and 1 more host)");
}

TEST(StatusLine, WithoutWorld_NamesTheAwaitedWorkers) {
  View view;
  view.state = JobState::kForming;
  view.explanation = "waiting for host b";
  view.waits_until = kNow + absl::Seconds(70);
  EXPECT_EQ(MakeStatusLine(view, kNow).text,
            "forming: waiting for host b; this wait ends in 1m10s at the latest");
  EXPECT_FALSE(MakeStatusLine(view, kNow).settled);
  view = Running();
  view.state = JobState::kResetting;
  view.explanation = "waiting for rank 1 to ask for the next world";
  view.failures = 1;
  EXPECT_EQ(MakeStatusLine(view, kNow).text,
            "world 7 | resetting: waiting for rank 1 to ask for the next world | "
            "1 failure (20 left)");
  EXPECT_FALSE(MakeStatusLine(view, kNow).settled);
}

}  // namespace
}  // namespace hvd::launcher::report
