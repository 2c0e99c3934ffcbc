#include "rendezvous/membership/commit_places.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rendezvous/membership/testing/small_job.h"

namespace hvd::rendezvous::membership {
namespace {

using testing::ElementsAre;
using Move = lifecycle::WorkerLifecycle::Move;

std::string NameOf(const Host* host) { return host == nullptr ? "none" : host->slots.host; }

class CommitPlacesTest : public testing::Test {
 protected:
  // The host's name with the newest commit above those of the workers that take part.
  std::string Above() { return NameOf(places_.HolderAbove(places_.Candidates())); }
  // The names of the hosts that can bring it.
  std::string Unwritten() {
    std::string names;
    for (const Host* host : places_.HoldersOfUnwritten()) names += host->slots.host;
    return names.empty() ? "none" : names;
  }
  std::string Awaited(absl::Time now) {
    return NameOf(places_.HolderAwaited(places_.Candidates(), now));
  }

  SmallJob job_;
  const CommitPlaces places_{job_.standing};
};

TEST_F(CommitPlacesTest, HasAny_OfAnAgentOrReported) {
  job_.AddHost("a");
  EXPECT_FALSE(places_.HasAny());
  job_.hosts[0].commit = 1;
  EXPECT_TRUE(places_.HasAny());
  job_.hosts[0].commit = 0;
  job_.epochs.reported_commit = 1;
  EXPECT_TRUE(places_.HasAny());
}

TEST_F(CommitPlacesTest, HolderOfNewest_WithoutHostsThatAreGone) {
  EXPECT_EQ(NameOf(places_.HolderOfNewest()), "none");
  job_.AddHost("a", 3);
  job_.AddHost("b", 5);
  job_.AddHost("c", 4);
  EXPECT_EQ(NameOf(places_.HolderOfNewest()), "b");
  job_.hosts[1].ended = true;
  EXPECT_EQ(NameOf(places_.HolderOfNewest()), "c");
  job_.hosts[2].agent.reset();
  EXPECT_EQ(NameOf(places_.HolderOfNewest()), "a");
  job_.hosts[2].away = Incarnation(3);
  EXPECT_EQ(NameOf(places_.HolderOfNewest()), "c") << "awaited after a restart of the daemon";
}

TEST_F(CommitPlacesTest, Restorable_TheWorkersOwnOrItsAgents) {
  job_.AddHost("a", 3);
  job_.AddHost("b", 1);
  job_.AddWorker(0).commit = 2;
  job_.AddWorker(1).commit = 7;
  EXPECT_EQ(places_.Restorable(job_.workers[0]), 3u);
  EXPECT_EQ(places_.Restorable(job_.workers[1]), 7u);
  EXPECT_EQ(places_.Restorable({&job_.workers[0], &job_.workers[1]}), 7u);
  EXPECT_EQ(places_.RestorableByAsking(), 0u);
  job_.Ask(job_.workers[0]);
  EXPECT_EQ(places_.RestorableByAsking(), 3u);
}

TEST_F(CommitPlacesTest, Candidates_AskAndStay) {
  job_.AddHost("a");
  job_.AddHost("b");
  job_.AddMember(0);
  job_.AddMember(0);
  job_.AddNewcomer(1);
  job_.AddWorker(1);
  job_.Ask(job_.workers[1]);
  EXPECT_THAT(places_.Candidates(), ElementsAre(&job_.workers[1], &job_.workers[2]));
  job_.Drain(job_.hosts[1], job_.now);
  EXPECT_THAT(places_.Candidates(), ElementsAre(&job_.workers[1]));
}

TEST_F(CommitPlacesTest, HolderAwaited_UntilPatienceEnds) {
  job_.AddHost("a", 4);
  job_.AddHost("b", 5);
  job_.AddNewcomer(0);
  job_.epochs.quorum_since = job_.now;
  EXPECT_EQ(Above(), "b");
  EXPECT_EQ(Awaited(job_.now), "b");
  EXPECT_EQ(Awaited(job_.now + CommitPlaces::kCopyPatience), "none");
  job_.hosts[0].commit = 5;
  EXPECT_EQ(Awaited(job_.now), "none") << "a has taken a copy";
}

TEST_F(CommitPlacesTest, HolderAbove_ARestMayCostOneCommitOnly) {
  job_.AddHost("a", 4);
  job_.AddHost("b", 5);
  job_.AddNewcomer(0);
  job_.hosts[1].rests_until = absl::InfiniteFuture();
  EXPECT_EQ(Above(), "none");
  job_.hosts[1].commit = 6;
  EXPECT_EQ(Above(), "b");
}

TEST_F(CommitPlacesTest, AwaitsLeaver_LeaverWithNewerCommitAndWithoutWorld) {
  job_.AddHost("a", 4);
  job_.AddHost("b");
  job_.AddNewcomer(0);
  Worker& leaver = job_.AddWorker(1);
  leaver.commit = 5;
  leaver.ends_by = job_.now + absl::Seconds(1);
  const auto awaits = [this](absl::Time now) {
    return places_.AwaitsLeaver(places_.Candidates(), now);
  };
  EXPECT_FALSE(awaits(job_.now)) << "it stays";
  job_.Drain(job_.hosts[1], job_.now);
  EXPECT_TRUE(awaits(job_.now));
  EXPECT_FALSE(awaits(job_.now + absl::Seconds(1)));
  leaver.commit = 4;
  EXPECT_FALSE(awaits(job_.now));
}

TEST_F(CommitPlacesTest, AwaitsLeaver_HostOfTheLeaverIsUsedAgain) {
  job_.AddHost("a");
  job_.AddHost("b");
  job_.AddNewcomer(0);
  Worker& released = job_.AddWorker(1);
  released.commit = 5;
  released.ends_by = job_.now + absl::Seconds(1);
  EXPECT_FALSE(places_.AwaitsLeaver(places_.Candidates(), job_.now));
  released.life.Make(Move::kRelease);
  EXPECT_TRUE(places_.AwaitsLeaver(places_.Candidates(), job_.now));
}

TEST_F(CommitPlacesTest, NewestOn_OfItsAgentAndItsWorkers) {
  job_.AddHost("a", 4);
  job_.AddHost("b", 9);
  job_.AddWorker(0).commit = 6;
  EXPECT_EQ(places_.NewestOn(job_.hosts[0]), 6u);
  job_.workers.End(&job_.workers[0], Move::kEndBadly, &job_.hosts);
  EXPECT_EQ(places_.NewestOn(job_.hosts[0]), 4u);
}

TEST_F(CommitPlacesTest, HasSeveralAlone_CountsNumbersOfCommitsAcrossWorlds) {
  job_.AddHost("a", CommitId(2, 6));
  job_.AddHost("b", CommitId(1, 5));
  EXPECT_FALSE(places_.HasSeveralAlone(job_.hosts[0]));
  job_.hosts[1].commit = CommitId(1, 4);
  EXPECT_TRUE(places_.HasSeveralAlone(job_.hosts[0]));
  EXPECT_FALSE(places_.OthersAreAsNew(job_.hosts[0]));
  job_.hosts[1].commit = CommitId(2, 6);
  EXPECT_TRUE(places_.OthersAreAsNew(job_.hosts[0]));
}

TEST_F(CommitPlacesTest, IsAlone_SeveralDrainedHosts_IsTheOneWithMostTimeLeft) {
  job_.AddHost("a", 5);
  job_.AddHost("b", 5);
  job_.AddHost("c", 4);
  job_.Drain(job_.hosts[0], job_.now + absl::Seconds(1));
  EXPECT_FALSE(CommitsElsewhere(places_).IsAlone(job_.hosts[0])) << "b stays";
  job_.Drain(job_.hosts[1], job_.now + absl::Seconds(2));
  EXPECT_FALSE(CommitsElsewhere(places_).IsAlone(job_.hosts[0]));
  EXPECT_TRUE(CommitsElsewhere(places_).IsAlone(job_.hosts[1]));
  job_.epochs.checkpoint.commit = 5;
  EXPECT_FALSE(CommitsElsewhere(places_).IsAlone(job_.hosts[1]));
}

TEST_F(CommitPlacesTest, Has_CommittedInTheWorld_MembersHaveIt) {
  job_.AddHost("a", 5);
  job_.AddHost("b");
  job_.AddMember(0);
  job_.AddMember(1);
  EXPECT_FALSE(CommitsElsewhere(places_).Has(job_.hosts[0]));
  job_.epochs.formed_at = job_.now;
  job_.epochs.formed_commit = 4;
  job_.epochs.reported_commit = 5;
  job_.epochs.committed_at = job_.now + absl::Seconds(1);
  EXPECT_TRUE(places_.CommittedInWorld());
  EXPECT_TRUE(CommitsElsewhere(places_).Has(job_.hosts[0]));
  job_.BreakWorld();
  EXPECT_FALSE(CommitsElsewhere(places_).Has(job_.hosts[0]));
}

TEST_F(CommitPlacesTest, Unwritten_AboveTheCheckpoint_IfRank0HasGone) {
  job_.AddHost("a");
  job_.AddHost("b", 5);
  job_.AddMember(0).commit = 5;
  job_.AddMember(1).commit = 5;
  job_.BreakWorld();
  EXPECT_EQ(places_.Unwritten(), 0u) << "the job writes no checkpoints";
  job_.epochs.checkpoint.place = "a:/checkpoints";
  job_.epochs.checkpoint.commit = 4;
  EXPECT_EQ(places_.Unwritten(), 0u) << "rank 0 runs";
  job_.epochs.formed_commit = 5;
  EXPECT_EQ(places_.Unwritten(), 5u) << "rank 0 has not committed in this world";
  job_.epochs.formed_commit = 4;
  job_.workers.End(&job_.workers[0], Move::kEndBadly, &job_.hosts);
  EXPECT_EQ(places_.Unwritten(), 5u);
  job_.epochs.checkpoint.commit = 5;
  EXPECT_EQ(places_.Unwritten(), 0u);
}

TEST_F(CommitPlacesTest, HoldersOfUnwritten_IfNoWorkerIsLeftThatCouldWriteIt) {
  job_.AddHost("a", 4);
  job_.AddHost("b", 5);
  job_.AddMember(0).commit = 5;
  job_.AddMember(1).commit = 5;
  job_.BreakWorld();
  job_.epochs.checkpoint.place = "a:/checkpoints";
  job_.workers.End(&job_.workers[0], Move::kEndBadly, &job_.hosts);
  EXPECT_EQ(Unwritten(), "none") << "rank 1 may leave a newer one";
  job_.workers.End(&job_.workers[1], Move::kEndBadly, &job_.hosts);
  EXPECT_EQ(Unwritten(), "b");
  job_.AddWorker(0);
  EXPECT_EQ(Unwritten(), "b") << "the other host's agent has an older one";
  job_.AddWorker(1);
  EXPECT_EQ(Unwritten(), "none") << "one that starts will";
}

TEST_F(CommitPlacesTest, MayHaveToBeWritten_TheNewestAboveTheCheckpoint_UnlessWritingFails) {
  job_.AddHost("a", 4);
  job_.AddHost("b", 5);
  EXPECT_FALSE(places_.MayHaveToBeWritten(job_.hosts[1])) << "the job writes no checkpoints";
  job_.epochs.checkpoint.place = "a:/checkpoints";
  EXPECT_TRUE(places_.MayHaveToBeWritten(job_.hosts[1]));
  EXPECT_FALSE(places_.MayHaveToBeWritten(job_.hosts[0]));
  job_.epochs.checkpoint.failure = "No space left on device";
  EXPECT_FALSE(places_.MayHaveToBeWritten(job_.hosts[1]));
  job_.epochs.checkpoint.failure.clear();
  job_.epochs.checkpoint.commit = 5;
  EXPECT_FALSE(places_.MayHaveToBeWritten(job_.hosts[1]));
}

}  // namespace
}  // namespace hvd::rendezvous::membership
