#include "rendezvous/membership/workers.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::rendezvous::membership {
namespace {

using testing::ElementsAre;
using testing::Pair;
using Move = lifecycle::WorkerLifecycle::Move;

class WorkersTest : public testing::Test {
 protected:
  WorkersTest() {
    for (const char* name : {"a", "b"}) hosts_.Add({name, 2});
    Add(1, 0, 0);
    Add(2, 0, 1);
    Add(5, 1, 0);
  }

  Worker& Add(uint64_t id, int host, int slot) {
    Worker worker;
    worker.id = WorkerId(id);
    worker.host = host;
    worker.place.rank = static_cast<int>(workers_.size());
    worker.slot = slot;
    return workers_.Add(worker, &hosts_);
  }

  Hosts hosts_;
  Workers workers_;
};

TEST_F(WorkersTest, Find_ById) {
  EXPECT_EQ(workers_.IndexOf(*workers_.Find(WorkerId(5))), 2);
  EXPECT_EQ(workers_.Find(WorkerId(3)), nullptr);
}

TEST_F(WorkersTest, End_IsCountedOnce) {
  Worker* worker = workers_.Find(WorkerId(2));
  workers_.End(worker, Move::kEndWell, &hosts_);
  workers_.End(worker, Move::kEndBadly, &hosts_);
  EXPECT_EQ(workers_.live, 2);
  EXPECT_EQ(hosts_[0].live, 1);
  EXPECT_EQ(worker->life.life(), lifecycle::WorkerLifecycle::Life::kLeft);
  EXPECT_EQ(workers_.Check(hosts_), "");
}

TEST_F(WorkersTest, Slots_AreFreeWhenTheirWorkerIsGone) {
  workers_.End(workers_.Find(WorkerId(5)), Move::kEndBadly, &hosts_);
  EXPECT_THAT(workers_.TakenSlots(), ElementsAre(Pair(0, 0), Pair(0, 1)));
  Add(6, 1, 0);
  EXPECT_EQ(workers_.NewestInSlots().at({1, 0}), WorkerId(6));
  EXPECT_EQ(workers_.Check(hosts_), "");
}

TEST_F(WorkersTest, ForgetGone_KeepsThoseOfTheWorld) {
  workers_[0].last_world = Epoch(3);
  workers_.End(&workers_[0], Move::kEndWell, &hosts_);
  workers_.End(&workers_[1], Move::kEndWell, &hosts_);
  workers_.ForgetGone(Epoch(3));
  EXPECT_EQ(workers_.size(), 2);
  EXPECT_EQ(workers_.Find(WorkerId(2)), nullptr);
}

TEST_F(WorkersTest, SomeFail_UntilTheyAreGone) {
  workers_[1].life.Make(Move::kSayFailing);
  EXPECT_TRUE(workers_.SomeFail());
  workers_.End(&workers_[1], Move::kEndBadly, &hosts_);
  EXPECT_FALSE(workers_.SomeFail());
}

TEST_F(WorkersTest, Check_NamesTheViolation) {
  workers_[2].life.Make(Move::kDisown);
  EXPECT_EQ(workers_.Check(hosts_),
            "worker 5: move Disown of a worker that is outside and running");
  workers_[2].life = lifecycle::WorkerLifecycle();
  workers_[1].slot = 0;
  EXPECT_EQ(workers_.Check(hosts_), "worker 2 shares its slot");
  workers_[1].slot = 1;
  ++hosts_[1].live;
  EXPECT_EQ(workers_.Check(hosts_), "the workers on host b are miscounted");
  workers_[0].host = 2;
  EXPECT_EQ(workers_.Check(hosts_), "a worker without a host");
}

}  // namespace
}  // namespace hvd::rendezvous::membership
