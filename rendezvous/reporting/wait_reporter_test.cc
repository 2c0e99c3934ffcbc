#include "rendezvous/reporting/wait_reporter.h"

#include "gtest/gtest.h"

namespace hvd::rendezvous::reporting {
namespace {

using lifecycle::WorkerState;

class WaitReporterTest : public testing::Test {
 protected:
  // What is said while the time passes, with a look each second.
  std::vector<std::string> Pass(absl::Duration time) {
    std::vector<std::string> lines;
    for (const absl::Time end = now_ + time; now_ < end; now_ += absl::Seconds(1)) {
      if (now_ < news_.NextDue()) continue;
      std::string line = news_.Check(view_, now_);
      if (!line.empty()) lines.push_back(std::move(line));
    }
    return lines;
  }
  void WaitFor(membership::Membership::Wait what, const std::string& explanation,
               absl::Duration limit) {
    view_.waits_for = what;
    view_.explanation = explanation;
    view_.waits_until = now_ + limit;
  }
  void Run(const std::vector<WorkerState>& states) {
    view_ = {};
    view_.state = lifecycle::JobState::kRunning;
    view_.explanation = "ranks run";
    view_.hosts.resize(1);
    view_.hosts[0].host.host = "h";
    for (size_t i = 0; i < states.size(); ++i) {
      view_.hosts[0].workers.push_back({WorkerId(i + 1), static_cast<int>(i), 0, states[i]});
    }
  }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  membership::Membership::View view_;
  WaitReporter news_;
};

TEST_F(WaitReporterTest, Check_MissingHosts_AreReportedSoonAndThenLessOften) {
  WaitFor(membership::Membership::Wait::kHosts, "waiting for more hosts to attach (1 of 2 slots)",
          absl::Minutes(10));
  EXPECT_EQ(Pass(absl::Seconds(3)), std::vector<std::string>());
  EXPECT_EQ(Pass(absl::Seconds(3)),
            std::vector<std::string>({"waiting for more hosts to attach (1 of 2 slots); this wait "
                                      "ends in 9m57s at the latest"}));
  EXPECT_EQ(Pass(absl::Minutes(9)).size(), 4u);  // after 30 s, 60 s, 120 s, 240 s
}

TEST_F(WaitReporterTest, Check_OtherHostsMissing_IsReportedSoon) {
  WaitFor(membership::Membership::Wait::kHosts, "waiting for hosts a, b to attach",
          absl::Minutes(1));
  EXPECT_EQ(Pass(absl::Seconds(7)).size(), 1u);
  WaitFor(membership::Membership::Wait::kHosts, "waiting for host b to attach", absl::Minutes(1));
  EXPECT_EQ(Pass(absl::Seconds(12)).size(), 1u);
}

TEST_F(WaitReporterTest, Check_QuickStart_ReportsNothing) {
  WaitFor(membership::Membership::Wait::kHosts, "waiting for hosts a, b to attach",
          absl::Minutes(1));
  Pass(absl::Seconds(2));
  WaitFor(membership::Membership::Wait::kWorkers,
          "waiting for 2 workers: none is ready, 2 are starting", absl::Minutes(1));
  EXPECT_EQ(Pass(absl::Seconds(14)), std::vector<std::string>());
  EXPECT_EQ(Pass(absl::Seconds(6)).size(), 1u);
}

TEST_F(WaitReporterTest, Check_MemberThatDoesNotAsk_IsReportedAfterSeconds) {
  WaitFor(membership::Membership::Wait::kMembers, "waiting for rank 1 to ask for the next world",
          absl::Minutes(1));
  EXPECT_EQ(
      Pass(absl::Seconds(9)),
      std::vector<std::string>({view_.explanation + "; this wait ends in 54s at the latest"}));
}

TEST_F(WaitReporterTest, Check_MemberWithoutInit_IsReportedWithoutLimit) {
  WaitFor(membership::Membership::Wait::kInit, "waiting for rank 1 to call hvd.init() (1 of 2)",
          absl::InfiniteDuration());
  EXPECT_EQ(Pass(absl::Seconds(65)), std::vector<std::string>({view_.explanation}));
}

TEST_F(WaitReporterTest, Check_RankThatRunsOnAlone_IsNamed) {
  Run({WorkerState::kFinished, WorkerState::kRunning, WorkerState::kFinished});
  EXPECT_EQ(Pass(absl::Seconds(65)),
            std::vector<std::string>(
                {"rank 1 on host h still runs, and the job waits: 2 ranks have finished"}));
  Run({WorkerState::kRunning, WorkerState::kRunning, WorkerState::kFinished});
  EXPECT_EQ(
      Pass(absl::Seconds(30)),
      std::vector<std::string>({"ranks 0, 1 still run, and the job waits: 1 rank has finished"}));
}

TEST_F(WaitReporterTest, Check_RankLeftBeforeThisWorld_ReportsNothing) {
  Run({WorkerState::kRunning, WorkerState::kFinished});
  view_.hosts[0].workers[1].is_of_newest_world = false;
  EXPECT_EQ(Pass(absl::Hours(1)), std::vector<std::string>());
}

TEST_F(WaitReporterTest, Check_RunningJob_ReportsNothing) {
  Run({WorkerState::kRunning, WorkerState::kRunning});
  EXPECT_EQ(Pass(absl::Hours(1)), std::vector<std::string>());
  Run({WorkerState::kFinished, WorkerState::kFinished});
  EXPECT_EQ(Pass(absl::Hours(1)), std::vector<std::string>());
}

}  // namespace
}  // namespace hvd::rendezvous::reporting
