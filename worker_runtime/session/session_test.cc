#include "worker_runtime/session/session.h"

#include <deque>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// What the daemon would say, set beforehand; shared by all clients that a test's factory makes.
struct Script {
  absl::StatusOr<pb::JoinWorldResponse> join = absl::UnavailableError("not set");
  std::deque<absl::StatusOr<pb::WatchEpochResponse>> watch;  // empty: parks until cancelled
  pb::JoinWorldRequest last_join;
  pb::ReportRequest last_report;
  pb::ExchangeRequest last_exchange;
};

class ScriptedClient : public RendezvousClient {
 public:
  explicit ScriptedClient(Script& script) : script_(script) {}

  absl::StatusOr<pb::JoinWorldResponse> JoinWorld(const pb::JoinWorldRequest& request,
                                                  absl::Duration) override {
    script_.last_join = request;
    return script_.join;
  }
  absl::StatusOr<pb::WatchEpochResponse> WatchEpoch(const pb::WatchEpochRequest&,
                                                    absl::Duration) override {
    if (script_.watch.empty()) {
      cancelled_.WaitForNotification();
      return absl::CancelledError("cancelled");
    }
    auto result = script_.watch.front();
    script_.watch.pop_front();
    return result;
  }
  absl::StatusOr<pb::ExchangeResponse> Exchange(const pb::ExchangeRequest& request,
                                                absl::Duration) override {
    script_.last_exchange = request;
    pb::ExchangeResponse response;
    response.add_values(request.value());
    response.add_values("other");
    return response;
  }
  absl::StatusOr<pb::ReportResponse> Report(const pb::ReportRequest& request,
                                            absl::Duration) override {
    script_.last_report = request;
    return pb::ReportResponse();
  }
  absl::StatusOr<pb::GetStatusResponse> GetStatus(absl::Duration) override {
    pb::GetStatusResponse response;
    response.set_explanation("waiting for rank 1 to call hvd.init()");
    return response;
  }
  void CancelAll() override { cancelled_.Notify(); }

 private:
  Script& script_;
  absl::Notification cancelled_;
};

class SessionTest : public ::testing::Test {
 protected:
  static pb::World TwoMembers() {
    pb::World world;
    world.set_epoch(3);
    world.set_secret("s");
    for (int rank : {0, 1}) {
      pb::Member* member = world.add_members();
      member->mutable_worker()->set_worker_id(10 + rank);
      member->set_rank(rank);
      member->set_address("127.0.0.1");
      member->set_control_port(1000 + rank);
      member->set_local_rank(rank);
      member->set_local_size(2);
      member->set_cross_size(1);
    }
    return world;
  }

  Script script_;
  Session session_{WorkerId(11), Incarnation(99), "127.0.0.1",
                   [this] { return std::make_unique<ScriptedClient>(script_); }};
};

TEST_F(SessionTest, JoinNextWorld_FindsItsOwnRank) {
  script_.join.emplace();
  *script_.join->mutable_world() = TwoMembers();
  const auto world = session_.JoinNextWorld(4242, absl::Seconds(1));
  ASSERT_TRUE(world.ok()) << world.status();
  EXPECT_EQ(world->epoch, Epoch(3));
  EXPECT_EQ(world->rank, 1);
  EXPECT_EQ(world->size(), 2);
  EXPECT_EQ(world->self().control_port, 1001);
  EXPECT_TRUE(world->IsHomogeneous());
  EXPECT_EQ(script_.last_join.control_port(), 4242u);
  EXPECT_EQ(script_.last_join.worker().incarnation(), 99u);
}

TEST_F(SessionTest, JoinNextWorld_SecondTime_TellsTheLastEpoch) {
  script_.join.emplace();
  *script_.join->mutable_world() = TwoMembers();
  ASSERT_TRUE(session_.JoinNextWorld(1, absl::Seconds(1)).ok());
  EXPECT_EQ(script_.last_join.last_epoch(), 0u);
  ASSERT_TRUE(session_.JoinNextWorld(1, absl::Seconds(1)).ok());
  EXPECT_EQ(script_.last_join.last_epoch(), 3u);
}

TEST_F(SessionTest, JoinNextWorld_TimesOut_NamesWhomTheDaemonWaitsFor) {
  script_.join = absl::DeadlineExceededError("parked");
  const auto world = session_.JoinNextWorld(1, absl::Seconds(1));
  EXPECT_EQ(world.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(world.status().message()), HasSubstr("waiting for rank 1"));
}

TEST_F(SessionTest, JoinNextWorld_WorldWithoutThisWorker_IsRefused) {
  pb::World world = TwoMembers();
  world.mutable_members(1)->mutable_worker()->set_worker_id(77);
  script_.join.emplace();
  *script_.join->mutable_world() = world;
  EXPECT_EQ(session_.JoinNextWorld(1, absl::Seconds(1)).status().code(),
            absl::StatusCode::kInternal);
}

TEST_F(SessionTest, NewKeyExchange_AllGather_CarriesEpochAndKey) {
  const auto values =
      session_.NewKeyExchange(Epoch(5))->AllGather("gloo", "mine", absl::Seconds(1));
  ASSERT_TRUE(values.ok());
  EXPECT_THAT(*values, ElementsAre("mine", "other"));
  EXPECT_EQ(script_.last_exchange.epoch(), 5u);
  EXPECT_EQ(script_.last_exchange.key(), "gloo");
}

TEST_F(SessionTest, Watch_AskedAgainAfterATimeout_PassesTheReasonOn) {
  pb::WatchEpochResponse broken;
  broken.set_reason("rank 0 is gone");
  script_.watch.push_back(absl::DeadlineExceededError("parked"));
  script_.watch.push_back(broken);
  std::string reason;
  absl::Notification called;
  const auto watch = session_.Watch(Epoch(1), [&](const std::string& text) {
    reason = text;
    called.Notify();
  });
  called.WaitForNotification();
  EXPECT_EQ(reason, "rank 0 is gone");
}

TEST_F(SessionTest, Watch_Destroyed_EndsWithoutACall) {
  bool called = false;
  session_.Watch(Epoch(1), [&](const std::string&) { called = true; }).reset();
  EXPECT_FALSE(called);
}

TEST_F(SessionTest, ReportFailure_CarriesTheWord) {
  ASSERT_TRUE(session_.ReportFailure(Epoch(2), "ValueError: x", true, absl::Seconds(1)).ok());
  EXPECT_EQ(script_.last_report.failure().message(), "ValueError: x");
  EXPECT_TRUE(script_.last_report.failure().caused_by_peer());
  ASSERT_TRUE(session_.ReportFinished(Epoch(2), absl::Seconds(1)).ok());
  EXPECT_TRUE(script_.last_report.has_finished());
}

}  // namespace
}  // namespace hvd
