#include "rendezvous/membership/decisions/copy_plan.h"

#include <string>

#include "gtest/gtest.h"

namespace hvd::rendezvous::membership::decisions {
namespace {

// Host a has commit 5, of which host b may take a copy; a worker on b asks for the next world.
class CopyPlanTest : public testing::Test {
 protected:
  CopyPlanTest() {
    for (const std::string name : {"a", "b"}) {
      Host& host = hosts_.Add({name, 1});
      host.agent = Incarnation(hosts_.IndexOf(host) + 1);
      host.commit_address = name + ":1";
    }
    hosts_[0].commit = 5;
    AddWorker(1, /*host=*/1).join = JoinRequested();
    epochs_.quorum_since = now_;
  }

  Worker& AddWorker(uint64_t id, int host) {
    Worker worker;
    worker.id = WorkerId(id);
    worker.host = host;
    return workers_.Add(worker, &hosts_);
  }
  const Host* HolderWithoutWorker(absl::Duration later = absl::ZeroDuration()) {
    return CopyPlan(Standing(hosts_, workers_, epochs_)).HolderWithoutWorker(now_ + later);
  }

  const absl::Time now_ = absl::UnixEpoch();
  Hosts hosts_;
  Workers workers_;
  Epochs epochs_;
};

TEST_F(CopyPlanTest, HolderWithoutWorker_ACopyCanBeTaken_NeedsNone) {
  EXPECT_EQ(HolderWithoutWorker(), nullptr);
}

TEST_F(CopyPlanTest, HolderWithoutWorker_CopyFailed_NeedsAWorker) {
  hosts_[1].no_copies_from = "a:1";
  EXPECT_EQ(HolderWithoutWorker(), &hosts_[0]);
  AddWorker(2, /*host=*/0);
  EXPECT_EQ(HolderWithoutWorker(), nullptr) << "that worker will bring the commit";
}

TEST_F(CopyPlanTest, HolderWithoutWorker_OnlyAsLongAsTheCommitIsAwaited) {
  hosts_[1].no_copies_from = "a:1";
  EXPECT_EQ(HolderWithoutWorker(CommitPlaces::kCopyPatience), nullptr);
  epochs_.quorum_since = absl::InfiniteFuture();
  EXPECT_EQ(HolderWithoutWorker(), nullptr);
}

TEST_F(CopyPlanTest, Wanted_AWorldLacksTheCommit_TheHostOfItsWorkerTakesACopy) {
  const CopyPlan::Copying wanted = CopyPlan(Standing(hosts_, workers_, epochs_)).Wanted();
  EXPECT_EQ(wanted.holder, &hosts_[0]);
  EXPECT_EQ(wanted.keeper, &hosts_[1]);
}

}  // namespace
}  // namespace hvd::rendezvous::membership::decisions
