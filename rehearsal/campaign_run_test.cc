#include "rehearsal/campaign_run.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rehearsal/rehearsal_report.h"
#include "rendezvous/lifecycle/states.h"

namespace hvd::rehearsal {
namespace {

using Kind = CampaignRun::Notice::Kind;
using rendezvous::lifecycle::JobState;
using rendezvous::lifecycle::WorkerState;

// A job of two hosts with two ranks each, which makes a commit each second.
class CampaignRunTest : public testing::Test {
 protected:
  void Begin(const std::string& faults) {
    auto campaign =
        ParseCampaign(absl::StrCat("{\"seed\": 3, \"faults\": [", faults, "]}"), "c.json");
    ASSERT_TRUE(campaign.ok()) << campaign.status();
    run_.emplace(*std::move(campaign), absl::Seconds(30), on_corruption_, now_);
    Pass(10);
    view_.state = JobState::kRunning;
    view_.min_workers = 2;
    FormWorld(1, {{"a", 0}, {"a", 1}, {"b", 2}, {"b", 3}}, 0);
  }

  void Pass(double seconds) { now_ += absl::Seconds(seconds); }

  void Tell(Kind kind, const std::string& host = "", uint64_t worker = 0,
            const std::string& text = "") {
    CampaignRun::Notice notice;
    notice.kind = kind;
    notice.epoch = view_.epoch;
    notice.host = host;
    notice.worker = WorkerId(worker);
    notice.text = text;
    run_->Observe(notice, now_);
  }

  // Worker r + 100 has rank r.
  void FormWorld(uint64_t epoch, const std::vector<std::pair<std::string, int>>& ranks,
                 uint64_t commit) {
    view_.epoch = Epoch(epoch);
    view_.size = static_cast<int>(ranks.size());
    view_.has_begun = true;
    view_.hosts.clear();
    for (const char* name : {"a", "b"}) {
      rendezvous::membership::Membership::HostView host;
      host.host.host = name;
      host.attached = true;
      for (const auto& [on, rank] : ranks) {
        if (on == name)
          host.workers.push_back({WorkerId(100 + rank), rank, 1, WorkerState::kRunning});
      }
      view_.hosts.push_back(host);
    }
    CampaignRun::Notice notice;
    notice.kind = Kind::kWorldBegan;
    notice.epoch = Epoch(epoch);
    notice.commit = commit;
    run_->Observe(notice, now_);
    view_.commit = commit;
  }

  void Look() { run_->Observe(view_, now_); }
  void Commit() {
    ++view_.commit;
    view_.committed_at = now_;
    Look();
  }
  void CommitEachSecond(int count) {
    for (int i = 0; i < count; ++i) {
      Pass(1);
      Commit();
    }
  }
  std::optional<Order> Next() { return run_->Next(view_, now_); }
  // Of the first fault.
  const Row& row(size_t index = 0) { return run_->rows()[index]; }

  absl::Time now_ = absl::UnixEpoch();
  CampaignRun::View view_;
  settings::OnCorruption on_corruption_ = settings::OnCorruption::kWarn;
  std::optional<CampaignRun> run_;
};

TEST_F(CampaignRunTest, AStepIsDueAfterItsCommit) {
  Begin(R"({"kind": "kill", "at": {"step": 3}, "rank": 2})");
  EXPECT_FALSE(Next().has_value());
  CommitEachSecond(2);
  EXPECT_FALSE(Next().has_value());
  CommitEachSecond(1);
  const std::optional<Order> order = Next();
  ASSERT_TRUE(order.has_value());
  EXPECT_EQ(order->worker, WorkerId(102));
  EXPECT_EQ(order->host, "b");
  EXPECT_EQ(order->text, "kill of rank 2 on b after commit 3");
  EXPECT_FALSE(Next().has_value()) << "once";
}

TEST_F(CampaignRunTest, ATimeCountsFromTheBeginOfTraining) {
  Begin(R"({"kind": "kill", "at": {"seconds": 5}})");
  Commit();
  Pass(4.9);
  EXPECT_FALSE(Next().has_value());
  Pass(0.2);
  EXPECT_TRUE(Next().has_value());
}

TEST_F(CampaignRunTest, AKillIsAsPromisedWhenTheOthersGoOnFromTheNewestCommit) {
  Begin(R"({"kind": "kill", "at": {"step": 3}, "rank": 2})");
  CommitEachSecond(3);
  ASSERT_TRUE(Next().has_value());
  run_->Answer(1, "", now_);
  Tell(Kind::kEpochBroken);
  Pass(0.25);
  FormWorld(2, {{"a", 0}, {"a", 1}, {"b", 2}}, 3);
  Look();
  EXPECT_FALSE(run_->is_over()) << "no commit yet";
  Pass(0.25);
  Commit();
  EXPECT_FALSE(run_->is_over()) << "the failure is not known yet";
  Tell(Kind::kWorkerFailed, "b", 102);
  Look();
  EXPECT_TRUE(run_->is_over());
  EXPECT_EQ(row().verdict, Verdict::kAsPromised);
  EXPECT_EQ(row().took, absl::Seconds(0.5));
  EXPECT_EQ(row().happened, "world 2 of 3 ranks went on from commit 3");
  EXPECT_TRUE(run_->AllAsPromised());
}

constexpr char kWrongValue[] = R"({"kind": "wrong_gradient_value", "at": {"step": 3}, "rank": 2})";

TEST_F(CampaignRunTest, AWrongValueIsWarnedOfAndTrainingGoesOn) {
  Begin(kWrongValue);
  CommitEachSecond(3);
  ASSERT_TRUE(Next().has_value());
  run_->Answer(1, "", now_);
  CommitEachSecond(1);
  EXPECT_EQ(row().expected, "a line names the rank; training goes on");
  EXPECT_EQ(row().verdict, Verdict::kAsPromised);
}

TEST_F(CampaignRunTest, AWrongValueOfRank0LetsAllRanksGoBack) {
  Begin(kWrongValue);
  CommitEachSecond(3);
  ASSERT_TRUE(Next().has_value());
  run_->Answer(1, "", now_);
  Tell(Kind::kEpochBroken);
  FormWorld(2, {{"a", 0}, {"a", 1}, {"b", 2}, {"b", 3}}, 3);
  CommitEachSecond(1);
  EXPECT_EQ(row().verdict, Verdict::kAsPromised);
  EXPECT_EQ(row().happened, "world 2 of 4 ranks went on from commit 3");
}

TEST_F(CampaignRunTest, AWrongValueEvictsARankAndTheOthersGoBackToTheCommitBefore) {
  on_corruption_ = settings::OnCorruption::kEvict;
  Begin(kWrongValue);
  CommitEachSecond(3);
  ASSERT_TRUE(Next().has_value());
  run_->Answer(1, "", now_);
  Tell(Kind::kEpochBroken);
  FormWorld(2, {{"a", 0}, {"a", 1}, {"b", 2}}, 3);
  Look();
  EXPECT_FALSE(run_->is_over()) << "no commit yet";
  CommitEachSecond(1);
  EXPECT_EQ(row().verdict, Verdict::kAsPromised);
  EXPECT_EQ(row().happened, "world 2 of 3 ranks went on from commit 3");
}

TEST_F(CampaignRunTest, ALostCommitIsNotAsPromised) {
  Begin(R"({"kind": "kill", "at": {"step": 3}, "rank": 2})");
  CommitEachSecond(3);
  ASSERT_TRUE(Next().has_value());
  Tell(Kind::kEpochBroken);
  Tell(Kind::kWorkerFailed, "b", 102);
  FormWorld(2, {{"a", 0}, {"a", 1}, {"b", 2}}, 1);
  CommitEachSecond(1);
  EXPECT_EQ(row().verdict, Verdict::kNotAsPromised);
  EXPECT_EQ(row().happened,
            "world 2 of 3 ranks went on from commit 1; 2 commits that had returned were lost");
}

TEST_F(CampaignRunTest, AnotherWorkersFailureIsNotTheOneThatWasOrdered) {
  Begin(R"({"kind": "kill", "at": {"step": 3}, "rank": 2})");
  CommitEachSecond(3);
  ASSERT_TRUE(Next().has_value());
  Tell(Kind::kEpochBroken);
  Tell(Kind::kWorkerFailed, "a", 100);
  FormWorld(2, {{"a", 1}, {"b", 2}, {"b", 3}}, 3);
  CommitEachSecond(1);
  EXPECT_FALSE(run_->is_over());
}

TEST_F(CampaignRunTest, TheLimitEndsTheWait) {
  Begin(R"({"kind": "kill", "at": {"step": 3}, "rank": 2})");
  CommitEachSecond(3);
  ASSERT_TRUE(Next().has_value());
  run_->Answer(1, "", now_);
  EXPECT_EQ(row().limit, absl::Seconds(7)) << "5 s, and twice the longest pause between commits";
  view_.explanation = "waiting for rank 1";
  Pass(7);
  Look();
  EXPECT_FALSE(run_->is_over());
  Pass(0.1);
  Look();
  EXPECT_EQ(row().verdict, Verdict::kNotAsPromised);
  EXPECT_EQ(row().happened, "no such end in 7s: waiting for rank 1");
}

TEST_F(CampaignRunTest, TheLimitIsLongerWhereReplacementsMustCome) {
  Begin(R"({"kind": "lost_host", "at": {"step": 3}, "host": "b"})");
  CommitEachSecond(3);
  view_.min_workers = 3;
  ASSERT_TRUE(Next().has_value());
  EXPECT_EQ(row().limit, absl::Seconds(7 + 11)) << "training began 11 s after the start";
}

TEST_F(CampaignRunTest, FaultsComeOneAfterTheOther) {
  Begin(R"({"kind": "kill", "at": {"step": 3}, "rank": 2},
           {"kind": "exception", "at": {"step": 3}, "rank": 0})");
  CommitEachSecond(3);
  EXPECT_EQ(Next()->id, 1U);
  CommitEachSecond(1);
  EXPECT_FALSE(Next().has_value());
  Tell(Kind::kEpochBroken);
  Tell(Kind::kWorkerFailed, "b", 102);
  FormWorld(2, {{"a", 0}, {"a", 1}, {"b", 2}}, 4);
  Look();
  EXPECT_FALSE(Next().has_value()) << "training must go on first";
  CommitEachSecond(1);
  EXPECT_EQ(Next()->id, 2U);
}

TEST_F(CampaignRunTest, ASlowRankLeavesTheWorldAsItIs) {
  Begin(R"({"kind": "slow_rank", "at": {"step": 1}, "rank": 0, "delay_ms": 9, "seconds": 2})");
  CommitEachSecond(1);
  ASSERT_TRUE(Next().has_value());
  run_->Answer(1, "", now_);
  CommitEachSecond(1);
  EXPECT_FALSE(run_->is_over()) << "it is still slow";
  CommitEachSecond(1);
  EXPECT_EQ(row().verdict, Verdict::kAsPromised);
}

TEST_F(CampaignRunTest, ASlowRankThatBreaksTheWorldIsNotAsPromised) {
  Begin(R"({"kind": "slow_rank", "at": {"step": 1}, "rank": 0, "delay_ms": 9, "seconds": 2})");
  CommitEachSecond(1);
  ASSERT_TRUE(Next().has_value());
  run_->Answer(1, "", now_);
  Tell(Kind::kEpochBroken, "", 0, "rank 1 gave up");
  Look();
  EXPECT_EQ(row().verdict, Verdict::kNotAsPromised);
  EXPECT_EQ(row().happened, "world 1 broke: rank 1 gave up");
}

TEST_F(CampaignRunTest, AStopWithAnEndIsNoFailure) {
  Begin(R"({"kind": "stop", "at": {"step": 1}, "rank": 0, "seconds": 3})");
  EXPECT_EQ(row().expected, "training goes on in the same world");
  CommitEachSecond(1);
  ASSERT_TRUE(Next().has_value());
  run_->Answer(1, "", now_);
  Pass(3.5);
  Commit();
  EXPECT_EQ(row().verdict, Verdict::kAsPromised);
  EXPECT_EQ(row().took, absl::Seconds(3.5));
}

TEST_F(CampaignRunTest, APreemptionLosesNoStep) {
  Begin(R"({"kind": "preemption", "at": {"step": 1}, "host": "b"})");
  CommitEachSecond(1);
  ASSERT_TRUE(Next().has_value());
  run_->Answer(1, "", now_);
  Tell(Kind::kHostDraining, "b");
  CommitEachSecond(1);
  FormWorld(2, {{"a", 0}, {"a", 1}}, 2);
  CommitEachSecond(1);
  EXPECT_FALSE(run_->is_over()) << "the host has not left";
  Tell(Kind::kHostLeft, "b");
  Look();
  EXPECT_EQ(row().verdict, Verdict::kAsPromised);
}

TEST_F(CampaignRunTest, APreemptionThatLeavesTooFewWaitsForMore) {
  Begin(R"({"kind": "preemption", "at": {"step": 1}, "host": "b"})");
  view_.min_workers = 3;
  CommitEachSecond(1);
  EXPECT_FALSE(Next().has_value());
  EXPECT_EQ(row().verdict, Verdict::kNotDone);
  EXPECT_EQ(row().happened, "the other hosts had 2 ranks, fewer than --min-np 3");
  EXPECT_FALSE(run_->AllAsPromised());
  FormWorld(2, {{"a", 0}, {"a", 1}, {"a", 4}, {"b", 2}}, 1);
  CommitEachSecond(1);
  EXPECT_TRUE(Next().has_value());
}

TEST_F(CampaignRunTest, AFullDiskIsSaidAndOver) {
  Begin(R"({"kind": "full_disk", "at": {"step": 1}, "seconds": 2})");
  view_.checkpoint_place = "/checkpoints";
  CommitEachSecond(1);
  ASSERT_EQ(Next()->worker, WorkerId(100)) << "rank 0 writes";
  run_->Answer(1, "", now_);
  view_.checkpoint_failure = "no space";
  Tell(Kind::kCheckpointFailed, "", 0, "no space");
  CommitEachSecond(3);
  EXPECT_FALSE(run_->is_over());
  view_.checkpoint_failure = "";
  view_.checkpoint = view_.commit;
  CommitEachSecond(1);
  EXPECT_EQ(row().verdict, Verdict::kAsPromised);
  EXPECT_EQ(row().happened, "said: no space; later a checkpoint of commit 4");
}

TEST_F(CampaignRunTest, AJobWithoutCheckpointsHasNoDiskToFill) {
  Begin(R"({"kind": "full_disk", "at": {"step": 1}, "seconds": 2})");
  CommitEachSecond(1);
  EXPECT_FALSE(Next().has_value());
  EXPECT_EQ(row().verdict, Verdict::kNotDone);
}

TEST_F(CampaignRunTest, WhatAnAgentCanNotDoIsNotDone) {
  Begin(R"({"kind": "exception", "at": {"step": 1}, "rank": 0})");
  CommitEachSecond(1);
  ASSERT_TRUE(Next().has_value());
  run_->Answer(1, "its process has ended", now_);
  EXPECT_EQ(row().verdict, Verdict::kNotDone);
  EXPECT_EQ(row().happened, "its process has ended");
}

TEST_F(CampaignRunTest, TheEndOfTheJobJudgesTheRest) {
  Begin(R"({"kind": "kill", "at": {"step": 3}, "rank": 2}, {"kind": "kill", "at": {"step": 9}})");
  CommitEachSecond(3);
  ASSERT_TRUE(Next().has_value());
  run_->End();
  EXPECT_EQ(row(0).verdict, Verdict::kNotAsPromised);
  EXPECT_EQ(row(1).verdict, Verdict::kNotDone);
  EXPECT_EQ(row(1).when, "commit 9");
  EXPECT_EQ(row(1).happened, "the job ended before");
}

TEST(RehearsalReportTest, TableAndJsonHaveEachFault) {
  RehearsalReport report;
  report.rows = {{FaultKind::kKill, "rank 2 on b", "commit 3, 3 s", "a next world", "world 2",
                  absl::Seconds(0.5), absl::Seconds(7), Verdict::kAsPromised},
                 {FaultKind::kStop, "a rank", "30 s", "a next world", "the job ended before",
                  std::nullopt, std::nullopt, Verdict::kNotDone}};
  report.seed = 3;
  report.exit_code = 70;
  EXPECT_EQ(
      ReportTable(report),
      "fault  target       when           verdict      seconds       expected      what happened\n"
      "kill   rank 2 on b  commit 3, 3 s  as promised  0.50 of 7.00  a next world  world 2\n"
      "stop   a rank       30 s           NOT done     - of -        a next world  the job ended "
      "before\n"
      "1 of 2 faults as promised; the job ended well\n");
  EXPECT_EQ(ReportJson(report),
            R"({"as_promised":false,"exit_code":70,"job_exit_code":0,"seed":3,"faults":[)"
            R"({"kind":"kill","target":"rank 2 on b","when":"commit 3, 3 s",)"
            R"("expected":"a next world","happened":"world 2","seconds":0.5,"limit_seconds":7,)"
            R"("verdict":"as promised"},)"
            R"({"kind":"stop","target":"a rank","when":"30 s","expected":"a next world",)"
            R"("happened":"the job ended before","seconds":null,"limit_seconds":null,)"
            R"("verdict":"NOT done"}]})"
            "\n");
}

}  // namespace
}  // namespace hvd::rehearsal
