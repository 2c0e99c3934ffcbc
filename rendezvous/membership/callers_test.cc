#include "rendezvous/membership/callers.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::rendezvous::membership {
namespace {

using testing::HasSubstr;
using Move = lifecycle::WorkerLifecycle::Move;

// Worker 1, the only member of world 1.
class CallersTest : public testing::Test {
 protected:
  CallersTest() {
    parts_.hosts.Add({"a", 1});
    Worker worker;
    worker.id = key_.id;
    worker.incarnation = key_.incarnation;
    worker.last_world = Epoch(1);
    worker.life.Make(Move::kEnter);
    parts_.workers.Add(worker, &parts_.hosts);
    parts_.workers.last_id = 2;
    parts_.epochs.current = Epoch(1);
    World world;
    world.members.emplace_back().worker = key_;
    parts_.epochs.world = std::make_shared<const World>(world);
  }

  Worker& worker() { return parts_.workers[0]; }
  absl::Status Speak() { return CheckSpeaker(parts_, key_, &worker()); }
  absl::Status SpeakAsUnknown(uint64_t id) {
    return CheckSpeaker(parts_, {WorkerId(id), Incarnation(7)}, nullptr);
  }
  bool WasLast() {
    ProgressReported event;
    event.worker = key_;
    event.epoch = Epoch(1);
    return membership::WasLast(parts_, event, worker());
  }

  const WorkerKey key_{WorkerId(1), Incarnation(5)};
  Parts parts_{policy::JobSpec(), absl::UnixEpoch()};
};

TEST_F(CallersTest, CheckSpeaker_FormerWorker_IsNamedInTheError) {
  EXPECT_TRUE(Speak().ok());
  EXPECT_THAT(SpeakAsUnknown(2).ToString(), HasSubstr("worker 2 is no longer in the job"));
  EXPECT_THAT(SpeakAsUnknown(3).ToString(), HasSubstr("this job has no worker 3"));
  EXPECT_THAT(SpeakAsUnknown(0).ToString(), HasSubstr("this job has no worker 0"));
}

TEST_F(CallersTest, CheckSpeaker_AReplacedProcessMayNotSpeak) {
  worker().superseded.insert(key_.incarnation);
  EXPECT_THAT(Speak().ToString(), HasSubstr("a newer process of rank 0 on host a has replaced"));
}

TEST_F(CallersTest, CheckSpeaker_AfterItsEndAndTheJobs) {
  parts_.workers.End(&worker(), Move::kEndWell, &parts_.hosts);
  EXPECT_THAT(Speak().ToString(), HasSubstr("has exited"));
  parts_.verdict.emplace();
  parts_.verdict->summary = "rank 1 failed";
  EXPECT_THAT(Speak().ToString(), HasSubstr("the job is over: rank 1 failed"));
}

TEST_F(CallersTest, CheckMember_OfThisWorldAndProcess) {
  EXPECT_TRUE(CheckMember(parts_, key_, worker(), Epoch(1)).ok());
  EXPECT_THAT(CheckMember(parts_, key_, worker(), Epoch(2)).ToString(),
              HasSubstr("is not in world 2 (the current world is 1)"));
  EXPECT_FALSE(CheckMember(parts_, {key_.id, Incarnation(6)}, worker(), Epoch(1)).ok());
  worker().last_world = Epoch(0);
  EXPECT_FALSE(CheckMember(parts_, key_, worker(), Epoch(1)).ok());
}

TEST_F(CallersTest, WasLast_OnceTheJobOrItsWorldIsOver) {
  EXPECT_FALSE(WasLast()) << "it is not over";
  parts_.epochs.broken = "a peer died";
  EXPECT_FALSE(WasLast()) << "it goes on";
  worker().life.Make(Move::kFinish);
  EXPECT_TRUE(WasLast());
  parts_.workers.End(&worker(), Move::kEndWell, &parts_.hosts);
  EXPECT_FALSE(WasLast());
}

}  // namespace
}  // namespace hvd::rendezvous::membership
