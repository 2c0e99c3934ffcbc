#include "rendezvous/membership/decisions/next_members.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "rendezvous/membership/testing/small_job.h"

namespace hvd::rendezvous::membership::decisions {
namespace {

// The number of a commit of the first world.
uint64_t Commit(uint64_t number) { return (uint64_t{1} << 40) + number; }

// Hosts a and b. The newest world has broken, and its members ask unless a test says otherwise.
class NextMembersTest : public testing::Test {
 protected:
  NextMembersTest() {
    job_.AddHost("a");
    job_.AddHost("b");
    // References to workers must stay valid.
    for (const int host : {0, 1}) job_.AddMember(host);
    job_.BreakWorld();
    job_.epochs.together_since = job_.now;
    for (Worker& worker : job_.workers) job_.Ask(worker);
  }

  // The ids of the chosen workers, e.g. "1 2"; "waits" if the world can't form now.
  std::string Chosen(absl::Duration later = absl::ZeroDuration()) {
    const auto members =
        NextMembers(limits_, job_.standing, &job_.workers, &job_.epochs).Choose(job_.now + later);
    if (!members.has_value()) return "waits";
    std::vector<std::string> ids;
    for (const Worker* worker : *members) ids.push_back(absl::StrCat(worker->id.value()));
    return absl::StrJoin(ids, " ");
  }
  Worker& worker(int id) { return *job_.workers.Find(WorkerId(id)); }

  MemberLimits limits_{/*least=*/1, /*most=*/4};
  SmallJob job_;
};

TEST_F(NextMembersTest, SurvivorsAndReadyNewcomers) {
  EXPECT_EQ(Chosen(), "1 2");
  job_.AddNewcomer(0);
  EXPECT_EQ(Chosen(), "1 2 3");
}

TEST_F(NextMembersTest, ASurvivorHasNotAsked_Waits) {
  worker(2).join.reset();
  EXPECT_EQ(Chosen(absl::Hours(1)), "waits");
}

TEST_F(NextMembersTest, AStoppedMemberIsStillThere_WaitsForItsEnd) {
  worker(2).life.Make(SmallJob::Move::kLeave);
  worker(2).life.Make(SmallJob::Move::kRelease);
  worker(2).join.reset();
  worker(2).ends_by = job_.now + absl::Seconds(5);
  EXPECT_EQ(Chosen(absl::Seconds(4)), "waits");
  EXPECT_EQ(Chosen(absl::Seconds(5)), "1");
}

TEST_F(NextMembersTest, TooFew_NotesSinceWhenThereAreEnough) {
  limits_.least = 3;
  EXPECT_EQ(Chosen(), "waits");
  EXPECT_EQ(job_.epochs.quorum_since, absl::InfiniteFuture());
  job_.AddNewcomer(0);
  EXPECT_EQ(Chosen(absl::Seconds(1)), "1 2 3");
  EXPECT_EQ(Chosen(absl::Seconds(2)), "1 2 3");
  EXPECT_EQ(job_.epochs.quorum_since, job_.now + absl::Seconds(1));
}

TEST_F(NextMembersTest, SurvivorsDoNotWaitForWorkersThatStart) {
  job_.AddWorker(0);
  EXPECT_EQ(Chosen(), "1 2");
}

TEST_F(NextMembersTest, NewcomersAloneWaitForOthersThatStart_UnlessTheyAreTheMaximum) {
  for (const int id : {1, 2}) {
    worker(id).join.reset();
    job_.workers.End(&worker(id), SmallJob::Move::kEndBadly, &job_.hosts);
  }
  job_.AddNewcomer(0);
  job_.AddWorker(1);
  EXPECT_EQ(Chosen(), "waits");
  EXPECT_EQ(Chosen(NextMembers::kFormPatience), "3");
  limits_.most = 1;
  EXPECT_EQ(Chosen(absl::Seconds(1)), "3");
}

TEST_F(NextMembersTest, OnlyALeavingWorkerHasTheNewestCommit_ItTakesPartOnceMore) {
  SmallJob::Drain(job_.hosts[1], job_.now + absl::Minutes(1));
  worker(1).commit = worker(2).commit = Commit(3);
  EXPECT_EQ(Chosen(), "1");
  worker(2).commit = Commit(4);
  EXPECT_EQ(Chosen(), "1 2");
}

TEST_F(NextMembersTest, OnlyLeavingWorkersAndANewcomer_TheLowestRankPassesItsStateOn) {
  for (Host& host : job_.hosts) SmallJob::Drain(host, job_.now + absl::Minutes(1));
  job_.AddHost("c");
  job_.AddNewcomer(2);
  EXPECT_EQ(Chosen(), "1 3") << "without any commit";
  worker(1).commit = worker(2).commit = Commit(4);
  EXPECT_EQ(Chosen(), "1 3");
  worker(2).commit = Commit(5);
  EXPECT_EQ(Chosen(), "2 3");
}

TEST_F(NextMembersTest, AWorkerOfARestingHostIsTheOnlyOneWithTheNewestCommit_ThatIsGivenUp) {
  job_.hosts[1].rests_until = absl::InfiniteFuture();
  worker(1).commit = Commit(3);
  worker(2).commit = Commit(4);
  EXPECT_EQ(Chosen(), "1");
}

TEST_F(NextMembersTest, AllLeave_Waits) {
  for (Host& host : job_.hosts) SmallJob::Drain(host, job_.now + absl::Minutes(1));
  EXPECT_EQ(Chosen(absl::Hours(1)), "waits");
}

TEST_F(NextMembersTest, TheJobEndsAndItsCommitIsUnwritten_LeavingWorkersWriteIt) {
  for (Host& host : job_.hosts) SmallJob::Drain(host, job_.now + absl::Minutes(1));
  limits_.least = 3;
  limits_.is_to_write = true;
  EXPECT_EQ(Chosen(), "1 2");
}

TEST_F(NextMembersTest, AnotherHostsAgentHasANewerCommit_WaitsForItForAWhile) {
  job_.AddHost("c", Commit(9));
  EXPECT_EQ(Chosen(), "waits");
  EXPECT_EQ(Chosen(CommitPlaces::kCopyPatience - absl::Seconds(1)), "waits");
  EXPECT_EQ(Chosen(CommitPlaces::kCopyPatience), "1 2");
}

TEST_F(NextMembersTest, TheOldWorldMayStillTrain_WaitsForItsCertainEnd) {
  worker(1).may_train_until = worker(2).may_train_until = job_.now + absl::Seconds(34);
  for (const int id : {1, 2}) worker(id).join.reset();
  for (const int id : {1, 2}) job_.workers.End(&worker(id), SmallJob::Move::kEndBadly, &job_.hosts);
  job_.AddNewcomer(0);
  const std::string early = Chosen(absl::Seconds(33));
  const std::string late = Chosen(absl::Seconds(34));
  EXPECT_EQ(early + ", then " + late, "waits, then 3");
}

}  // namespace
}  // namespace hvd::rendezvous::membership::decisions
