#include "rendezvous/reporting/job_summary.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace hvd::rendezvous::reporting {
namespace {

using Kind = membership::Notice::Kind;

membership::Notice Make(membership::Notice::Kind kind, uint64_t epoch, const std::string& host = "",
                        uint64_t worker = 0, int rank = -1) {
  membership::Notice notice;
  notice.kind = kind;
  notice.epoch = Epoch(epoch);
  notice.host = host;
  notice.worker = WorkerId(worker);
  notice.rank = rank;
  return notice;
}

class JobSummaryTest : public ::testing::Test {
 protected:
  std::string Say(const membership::Notice& notice) {
    const JobSummary::Line line = progress_.Add(notice, now_);
    return line.important ? line.text : "(" + line.text + ")";
  }
  std::string World(uint64_t epoch, int size) {
    membership::Notice notice = Make(Kind::kWorldFormed, epoch);
    notice.size = size;
    notice.text = absl::StrCat("world of ", size, " workers formed");
    return Say(notice);
  }
  // World and the beginning of training in it.
  void Training(uint64_t epoch, int size) {
    World(epoch, size);
    Say(Make(Kind::kWorldBegan, epoch));
  }
  std::string Failed(int rank, const std::string& how, uint64_t epoch = 1) {
    membership::Notice notice = Make(Kind::kWorkerFailed, epoch, "b", 9, rank);
    notice.text = absl::StrCat(rank >= 0 ? absl::StrCat("rank ", rank) : "worker 9",
                               " on host b failed: ", how);
    return Say(notice);
  }
  std::string Say(Kind kind, const std::string& text, uint64_t epoch = 1) {
    membership::Notice notice = Make(kind, epoch, "c");
    notice.text = text;
    return Say(notice);
  }

  absl::Time now_ = absl::FromUnixSeconds(100);
  JobSummary progress_{2};
};

// Its script saves what it likes: nobody here knows what is lost.
TEST_F(JobSummaryTest, WorldThatStartsAnew_TellsOfNoLostWork) {
  membership::Notice notice = Make(Kind::kWorldFormed, 1);
  notice.size = 2;
  notice.starts_anew = true;
  Say(notice);
  Say(Make(Kind::kWorldBegan, 1));
  Failed(1, "exit code 3");
  Say(Kind::kEpochBroken, "rank 1 has failed");
  notice.epoch = Epoch(2);
  Say(notice);
  EXPECT_EQ(progress_.Summary(),
            "2 worlds; 1 failure (1 x exit code 3); 0s without a world (longest 0s)");
}

TEST_F(JobSummaryTest, Tell_Failure_SaysHowManyGoOn) {
  EXPECT_EQ(World(6, 4), "world of 4 workers formed (world 6)");
  EXPECT_EQ(Failed(1, "killed by signal 9 (SIGKILL)", 6),
            "rank 1 on host b failed: killed by signal 9 (SIGKILL); going on with 3 workers");
  EXPECT_EQ(Failed(2, "exit code 3", 6),
            "rank 2 on host b failed: exit code 3; going on with 2 workers");
  EXPECT_EQ(Failed(0, "exit code 3", 6),
            "rank 0 on host b failed: exit code 3; 1 of 4 workers remain");
}

TEST_F(JobSummaryTest, Tell_FailureOutsideOfTheWorld_CostsNoMember) {
  EXPECT_EQ(Failed(-1, "exit code 1"), "worker 9 on host b failed: exit code 1");
  World(1, 4);
  EXPECT_EQ(Failed(-1, "exit code 1"), "worker 9 on host b failed: exit code 1");
  EXPECT_EQ(Failed(3, "x"), "rank 3 on host b failed: x; going on with 3 workers");
}

TEST_F(JobSummaryTest, Tell_FailureInAnEarlierWorld_CostsNoMember) {
  World(1, 4);
  World(2, 3);
  EXPECT_EQ(Failed(3, "exit code 3", 1), "rank 3 on host b failed: exit code 3");
}

TEST_F(JobSummaryTest, Tell_Hosts_AreNewsOnceTheJobRuns) {
  EXPECT_EQ(Say(Kind::kHostJoined, "host c joined"), "(host c joined)");
  World(1, 2);
  EXPECT_EQ(Say(Kind::kHostJoined, "host c joined"), "host c joined");
  EXPECT_EQ(Say(Kind::kHostDraining, "host c leaves: SIGTERM"), "host c leaves: SIGTERM");
  EXPECT_EQ(Say(Kind::kHostLeft, "host c left"), "host c left");
}

TEST_F(JobSummaryTest, Tell_FailureAfterALostHost_CountsNobody) {
  World(1, 4);
  EXPECT_EQ(Say(Kind::kHostLost, "host c was lost: cut"), "host c was lost: cut");
  EXPECT_EQ(Failed(1, "exit code 3"), "rank 1 on host b failed: exit code 3");
}

TEST_F(JobSummaryTest, Tell_Details_OnlyIfAsked) {
  EXPECT_EQ(Say(Kind::kWorkerStarted, "worker 3 started"), "(worker 3 started)");
  EXPECT_EQ(Say(Kind::kEpochBroken, "host c was lost", 4), "(world 4 is broken: host c was lost)");
}

TEST_F(JobSummaryTest, Tell_SameException_IsFolded) {
  World(1, 9);
  EXPECT_EQ(Failed(1, "ValueError: x"),
            "rank 1 on host b failed: ValueError: x; going on with 8 workers");
  EXPECT_EQ(Failed(2, "ValueError: x"),
            "rank 2 on host b failed: the same for the 2nd time; going on with 7 workers");
  EXPECT_EQ(Failed(3, "ValueError: x"),
            "rank 3 on host b failed: the same for the 3rd time (ValueError: x); --max-failures "
            "3/1h would end such a job; going on with 6 workers");
  EXPECT_EQ(Failed(4, "ValueError: y"),
            "rank 4 on host b failed: ValueError: y; going on with 5 workers");
  EXPECT_EQ(progress_.Summary(), "1 world; 4 failures (3 x ValueError: x, 1 x ValueError: y)");
}

TEST_F(JobSummaryTest, Formed_AfterAFailure_ReportsTheLostWork) {
  World(1, 4);
  membership::Notice notice = Make(Kind::kWorldFormed, 2);
  notice.size = 3;
  notice.text = "world of 3 workers formed";
  notice.commit = 40;
  notice.lost_steps = 12;
  notice.lost_time = absl::Milliseconds(3210);
  Say(Kind::kEpochBroken, "why", 1);
  EXPECT_EQ(Say(notice),
            "world of 3 workers formed (world 2); 12 steps and 3.2s of work since commit 40 lost");
  notice.epoch = Epoch(3);
  notice.commit = notice.lost_steps = 0;
  EXPECT_EQ(Say(notice), "world of 3 workers formed (world 3); 3.2s of work since the start lost");
  EXPECT_EQ(progress_.Summary(),
            "3 worlds; work since the newest commit lost 1 time (12 steps and 6.4s of work); 0s "
            "without a world (longest 0s)");
}

TEST_F(JobSummaryTest, Began_WithACheckpoint_ReportsTheWorkLostSince) {
  World(1, 1);
  Say(Kind::kEpochBroken, "why", 1);
  World(2, 1);
  membership::Notice notice = Make(Kind::kWorldBegan, 2);
  notice.text = "world 2 goes on from commit 7";
  notice.commit = 7;
  EXPECT_FALSE(progress_.Add(notice, now_).important) << "the line about the world has said all";
  notice.lost_time = absl::Milliseconds(2100);
  EXPECT_TRUE(progress_.Add(notice, now_).important);
  EXPECT_EQ(Say(notice), "world 2 goes on from commit 7; 2.1s of work since commit 7 lost");
  EXPECT_EQ(progress_.Summary(),
            "2 worlds; the last world began with commit 7; work since the newest commit lost 1 "
            "time (4.2s of work); 0s without a world (longest 0s)");
}

TEST_F(JobSummaryTest, Summary_WithoutAWorld_IsEmpty) {
  Failed(-1, "exit code 1");
  EXPECT_EQ(progress_.Summary(), "");
}

TEST_F(JobSummaryTest, Summary_QuietJob_IsShort) {
  Say(Kind::kHostJoined, "host c joined");
  World(1, 2);
  EXPECT_EQ(progress_.Summary(), "1 world");
}

TEST_F(JobSummaryTest, Summary_TrainingThatDidNotBegin_LostNoWork) {
  World(1, 2);
  Say(Kind::kEpochBroken, "why", 1);
  World(2, 2);
  Say(Kind::kEpochBroken, "why", 2);
  EXPECT_EQ(progress_.Summary(), "2 worlds; 0s without a world (longest 0s)");
}

TEST_F(JobSummaryTest, Summary_CountsCausesHostsAndTime) {
  Training(1, 4);
  Failed(1, "exit code 3");
  Say(Kind::kEpochBroken, "why", 1);
  now_ += absl::Milliseconds(300);
  Say(Kind::kEpochBroken, "why", 1);  // another one, on the way
  Failed(2, "exit code 3");
  now_ += absl::Milliseconds(200);
  Training(2, 2);
  Say(Kind::kHostLost, "host c was lost: cut");
  Say(Kind::kHostJoined, "host c joined");
  Failed(1, "killed by signal 9 (SIGKILL)", 2);
  Say(Kind::kEpochBroken, "why", 2);
  now_ += absl::Milliseconds(100);
  World(3, 4);
  Say(Kind::kHostLeft, "host c left");
  EXPECT_EQ(progress_.Summary(),
            "3 worlds; 3 failures (2 x exit code 3, 1 x killed by signal 9 (SIGKILL)); 1 host "
            "joined; 1 host left; 1 host lost; work since the newest commit lost 2 times; 600ms "
            "without a world (longest 500ms)");
}

TEST_F(JobSummaryTest, Summary_DrainThatOverran_IsNotWithoutLoss) {
  Training(1, 4);
  Say(Kind::kEpochBroken, "rank 1 on host b has to leave now", 1);
  Say(Kind::kDrainOverran, "host b did not leave in good order");
  World(2, 3);
  Say(Kind::kHostLeft, "host b left, but not in good order");
  Say(Kind::kHostLeft, "host c left");
  EXPECT_EQ(progress_.Summary(),
            "2 worlds; 2 hosts left (1 not in good order); work since the newest commit lost 1 "
            "time; 0s without a world (longest 0s)");
}

TEST_F(JobSummaryTest, Summary_AllHostsLeft_TimeIsWithoutAWorld_NothingIsLost) {
  Say(Kind::kWaiting, "waiting for at least 2 workers (there are 0)");
  now_ += absl::Seconds(5);
  World(1, 2);
  Say(Kind::kHostLeft, "host a left");
  Say(Kind::kWaiting, "waiting for at least 2 workers (there are 0)");
  now_ += absl::Seconds(7);
  World(2, 2);
  EXPECT_EQ(progress_.Summary(), "2 worlds; 1 host left; 7s without a world (longest 7s)");
}

}  // namespace
}  // namespace hvd::rendezvous::reporting
