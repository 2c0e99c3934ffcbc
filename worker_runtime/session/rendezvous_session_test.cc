#include "worker_runtime/session/rendezvous_session.h"

#include <signal.h>

#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::worker_runtime::session {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The daemon's answers, set by the test; shared by all clients that its factory makes.
struct Script {
  absl::StatusOr<pb::JoinWorldResponse> join = absl::UnavailableError("not set");
  std::optional<absl::StatusOr<pb::JoinWorldResponse>> join_again;  // from the second call on
  std::deque<absl::StatusOr<pb::WatchEpochResponse>> watch;         // empty: parks until cancelled
  absl::StatusOr<pb::GetMembersResponse> members = absl::UnimplementedError("not scripted");
  int members_asked = 0;
  int clients = 0;  // that there are
  pb::JoinWorldRequest last_join;
  pb::WatchEpochRequest last_watch;
  pb::ReportRequest last_report;
  pb::ExchangeRequest last_exchange;
};

class ScriptedClient : public rendezvous::client::RendezvousClient {
 public:
  explicit ScriptedClient(Script& script) : script_(script) { ++script_.clients; }
  ~ScriptedClient() override { --script_.clients; }

  absl::StatusOr<pb::JoinWorldResponse> JoinWorld(const pb::JoinWorldRequest& request,
                                                  absl::Duration) override {
    script_.last_join = request;
    return std::exchange(script_.join, script_.join_again.value_or(script_.join));
  }
  absl::StatusOr<pb::GetMembersResponse> GetMembers(const pb::GetMembersRequest& request,
                                                    absl::Duration) override {
    ++script_.members_asked;
    EXPECT_EQ(request.epoch(), 3u);
    return script_.members;
  }
  absl::StatusOr<pb::WatchEpochResponse> WatchEpoch(const pb::WatchEpochRequest& request,
                                                    absl::Duration) override {
    script_.last_watch = request;
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
  absl::StatusOr<pb::ReportStallResponse> ReportStall(const pb::ReportStallRequest&,
                                                      absl::Duration) override {
    return pb::ReportStallResponse();
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
      member->mutable_worker()->set_incarnation(70 + rank);
      member->mutable_placement()->set_rank(rank);
      member->set_address("127.0.0.1");
      member->set_port(1000 + rank);
      member->mutable_placement()->set_local_rank(rank);
      member->mutable_placement()->set_local_size(2);
      member->mutable_placement()->set_cross_size(1);
      member->mutable_placement()->set_size(2);
    }
    world.set_homogeneous(true);
    return world;
  }
  // The same two as ranks 0 and 2 of a world of three.
  static pb::World TwoOfThree() {
    pb::World world = TwoMembers();
    world.mutable_members(1)->mutable_placement()->set_rank(2);
    for (pb::Member& member : *world.mutable_members()) {
      member.mutable_placement()->set_size(3);
    }
    return world;
  }

  Script script_;
  // The arguments of a watch's callback, until its last call.
  std::vector<std::string> Heard(absl::Duration reattach) {
    std::vector<std::string> heard;
    absl::Notification last;
    EpochWatch watch(std::make_unique<ScriptedClient>(script_), {}, reattach,
                     [&](EpochEvent change, const std::string& reason) {
                       const char* names[] = {"changing", "broken", "over"};
                       heard.push_back(absl::StrCat(names[static_cast<int>(change)], ": ", reason));
                       if (change != EpochEvent::kChanging) last.Notify();
                     });
    last.WaitForNotification();
    return heard;
  }
  static pb::WatchEpochResponse News(pb::WatchEpochResponse::Change change,
                                     const std::string& reason) {
    pb::WatchEpochResponse news;
    news.set_change(change);
    news.set_reason(reason);
    return news;
  }
  std::unique_ptr<Session> NewSession(bool elastic) {
    return std::make_unique<Session>(
        WorkerStanding{WorkerId(11), "127.0.0.1", elastic, absl::ZeroDuration()}, Incarnation(99),
        [this] { return std::make_unique<ScriptedClient>(script_); });
  }
  static pb::JoinWorldRequest Request(uint32_t port, bool may_defer = false, uint64_t commit = 0) {
    pb::JoinWorldRequest request;
    request.set_port(port);
    request.set_may_defer(may_defer);
    request.set_commit(commit);
    return request;
  }
  absl::StatusOr<WorkerWorld> Join(int port) {
    auto answer = session_.JoinNextWorld(Request(port), absl::Seconds(1));
    if (!answer.ok()) return answer.status();
    return std::get<WorkerWorld>(*std::move(answer));
  }

  const std::unique_ptr<Session> owned_ = NewSession(/*elastic=*/false);
  Session& session_ = *owned_;
};

TEST_F(SessionTest, JoinNextWorld_FindsItsOwnRank) {
  script_.join.emplace();
  *script_.join->mutable_world() = TwoMembers();
  const auto world = Join(4242);
  ASSERT_TRUE(world.ok()) << world.status();
  EXPECT_EQ(world->epoch, Epoch(3));
  EXPECT_EQ(world->rank(), 1);
  EXPECT_EQ(world->size(), 2);
  EXPECT_EQ(world->self().port, 1001);
  EXPECT_EQ(world->root.port, 1000);
  const auto peers = world->members->Get();
  ASSERT_TRUE(peers.ok()) << peers.status();
  EXPECT_EQ((*peers)[0].worker, WorkerId(10));
  EXPECT_EQ((*peers)[0].incarnation, Incarnation(70));
  EXPECT_EQ(script_.members_asked, 0);
  EXPECT_TRUE(world->IsHomogeneous());
  EXPECT_EQ(script_.last_join.port(), 4242u);
  EXPECT_EQ(script_.last_join.worker().incarnation(), 99u);
}

TEST_F(SessionTest, JoinNextWorld_LargeWorld_AsksForTheOthersOnceWhenNeeded) {
  script_.join.emplace();
  *script_.join->mutable_world() = TwoOfThree();
  const auto world = Join(1);
  ASSERT_TRUE(world.ok()) << world.status();
  EXPECT_EQ(world->rank(), 2);
  EXPECT_EQ(world->size(), 3);
  EXPECT_EQ(world->self().port, 1001);
  EXPECT_EQ(world->root.port, 1000);
  EXPECT_EQ(script_.members_asked, 0);
  script_.members = absl::UnavailableError("away");
  EXPECT_EQ(world->members->Get().status().code(), absl::StatusCode::kUnavailable);
  script_.members.emplace();
  for (int rank : {0, 1, 2}) {
    script_.members->add_members()->mutable_placement()->set_rank(rank);
    script_.members->mutable_members(rank)->set_port(2000 + rank);
  }
  for (int time : {1, 2}) {
    const auto peers = world->members->Get();
    ASSERT_TRUE(peers.ok()) << time << peers.status();
    ASSERT_EQ(peers->size(), 3u);
    EXPECT_EQ((*peers)[1].port, 2001);
  }
  EXPECT_EQ(script_.members_asked, 2);
}

TEST_F(SessionTest, JoinNextWorld_LargeWorld_ThatNamesTooFewMembers_IsRefused) {
  script_.join.emplace();
  *script_.join->mutable_world() = TwoOfThree();
  const auto world = Join(1);
  ASSERT_TRUE(world.ok()) << world.status();
  script_.members.emplace().add_members();
  EXPECT_EQ(world->members->Get().status().code(), absl::StatusCode::kInternal);
}

TEST_F(SessionTest, JoinNextWorld_SecondTime_TellsTheLastEpoch) {
  script_.join.emplace();
  *script_.join->mutable_world() = TwoMembers();
  ASSERT_TRUE(Join(1).ok());
  EXPECT_EQ(script_.last_join.last_epoch(), 0u);
  ASSERT_TRUE(Join(1).ok());
  EXPECT_EQ(script_.last_join.last_epoch(), 3u);
}

TEST_F(SessionTest, JoinNextWorld_TimesOut_NamesTheMissingRanks) {
  script_.join = absl::DeadlineExceededError("parked");
  const auto world = Join(1);
  EXPECT_EQ(world.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(world.status().message()), HasSubstr("no world within 1s: "));
  EXPECT_THAT(std::string(world.status().message()), HasSubstr("waiting for rank 1"));
}

TEST_F(SessionTest, JoinNextWorld_TimesOutAfterTheDaemonsTime_SaysHowLongThatWas) {
  script_.join = absl::DeadlineExceededError("parked");
  Session session({WorkerId(11), "127.0.0.1", /*elastic=*/false, absl::Minutes(30)},
                  Incarnation(99), [this] { return std::make_unique<ScriptedClient>(script_); });
  const auto answer = session.JoinNextWorld(Request(1), absl::Seconds(1));
  EXPECT_THAT(std::string(answer.status().message()), HasSubstr("no world within 30m: "));
}

TEST_F(SessionTest, JoinNextWorld_DaemonStaysAway_IsTheEndOfTheJobForThisWorker) {
  script_.join = absl::UnavailableError("the daemon was not reached within 5s");
  const auto answer = Join(1);
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(answer.status().message()), HasSubstr("not reached within 5s"));
}

TEST_F(SessionTest, JoinNextWorld_WorldWithoutThisWorker_IsRefused) {
  pb::World world = TwoMembers();
  world.mutable_members(1)->mutable_worker()->set_worker_id(77);
  script_.join.emplace();
  *script_.join->mutable_world() = world;
  EXPECT_EQ(Join(1).status().code(), absl::StatusCode::kInternal);
}

TEST_F(SessionTest, NewKeyExchange_AllGather_CarriesEpochAndKey) {
  const auto values =
      session_.NewKeyExchange(Epoch(5))->AllGather("gloo", "mine", absl::Seconds(1));
  ASSERT_TRUE(values.ok());
  EXPECT_THAT(*values, ElementsAre("mine", "other"));
  EXPECT_EQ(script_.last_exchange.epoch(), 5u);
  EXPECT_EQ(script_.last_exchange.key(), "gloo");
}

TEST_F(SessionTest, NewKeyExchange_Gather_AsksForSomeRanks) {
  const auto keys = session_.NewKeyExchange(Epoch(5));
  const auto selected = keys->Gather("gloo", "mine", {1, 0}, absl::Seconds(1));
  ASSERT_TRUE(selected.ok()) << selected.status();
  EXPECT_THAT(selected->values, ElementsAre("mine", "other"));
  EXPECT_THAT(script_.last_exchange.selection().ranks(), ElementsAre(1, 0));
  EXPECT_EQ(keys->Gather("gloo", "mine", {7}, absl::Seconds(1)).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(SessionTest, JoinNextWorld_CarriesCommitAndWhetherItMayDefer) {
  script_.join.emplace();
  pb::Placement* own = script_.join->mutable_deferred()->mutable_member()->mutable_placement();
  own->set_size(3);
  own->set_rank(2);
  own->set_local_size(2);
  const auto answer = session_.JoinNextWorld(Request(1, true, 17), absl::Seconds(1));
  ASSERT_TRUE(answer.ok()) << answer.status();
  const auto* place = std::get_if<DeferredPlace>(&*answer);
  ASSERT_NE(place, nullptr);
  EXPECT_EQ(place->place.rank, 2);
  EXPECT_EQ(place->place.size, 3);
  EXPECT_EQ(place->place.local_size, 2);
  EXPECT_TRUE(script_.last_join.may_defer());
  EXPECT_EQ(script_.last_join.commit(), 17u);
  EXPECT_EQ(session_.last_epoch(), Epoch(0));
}

TEST_F(SessionTest, JoinNextWorld_DeferredAlthoughReady_IsRefused) {
  script_.join.emplace();
  script_.join->mutable_deferred();
  EXPECT_EQ(session_.JoinNextWorld(Request(1), absl::Seconds(1)).status().code(),
            absl::StatusCode::kInternal);
}

TEST_F(SessionTest, JoinNextWorld_Released_GivesTheReason) {
  script_.join.emplace();
  script_.join->mutable_released()->set_reason("host a is draining");
  const auto answer = session_.JoinNextWorld(Request(1), absl::Seconds(1));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(std::get<ReleasedFromJob>(*answer).reason, "host a is draining");
}

TEST_F(SessionTest, JoinNextWorld_TellsWhetherStateMustBeSynced) {
  pb::World world = TwoMembers();
  for (bool sync : {true, false}) {
    world.set_sync_state(sync);
    script_.join.emplace();
    *script_.join->mutable_world() = world;
    EXPECT_EQ(Join(1)->sync_state, sync);
  }
}

TEST_F(SessionTest, JoinNextWorld_ElasticAndParkedLong_AsksAgain) {
  script_.join = absl::DeadlineExceededError("parked");
  pb::JoinWorldResponse released;
  released.mutable_released();
  script_.join_again = released;
  EXPECT_TRUE(NewSession(/*elastic=*/true)->JoinNextWorld(Request(1), absl::Seconds(1)).ok());
}

TEST_F(SessionTest, Watch_AskedAgainAfterATimeout_PassesTheReasonOn) {
  script_.watch.push_back(absl::DeadlineExceededError("parked"));
  script_.watch.push_back(News(pb::WatchEpochResponse::EPOCH_BROKEN, "rank 0 is gone"));
  EXPECT_THAT(Heard(absl::ZeroDuration()), ElementsAre("broken: rank 0 is gone"));
}

TEST_F(SessionTest, Watch_Changing_WatchesOnAndSaysThatItKnows) {
  script_.watch.push_back(News(pb::WatchEpochResponse::EPOCH_CHANGING, "host b has come"));
  script_.watch.push_back(News(pb::WatchEpochResponse::JOB_OVER, "done"));
  EXPECT_THAT(Heard(absl::ZeroDuration()), ElementsAre("changing: host b has come", "over: done"));
  EXPECT_TRUE(script_.last_watch.knows_of_change());
}

TEST_F(SessionTest, Watch_DaemonAway_EndsTheEpochOnlyIfItIsNotExpectedBack) {
  script_.watch.push_back(absl::UnavailableError("refused"));
  script_.watch.push_back(News(pb::WatchEpochResponse::EPOCH_BROKEN, "back"));
  EXPECT_THAT(Heard(absl::ZeroDuration()), ElementsAre("over: refused"));
  EXPECT_EQ(script_.watch.size(), 1u);
  script_.watch.push_front(absl::UnavailableError("refused"));
  EXPECT_THAT(Heard(absl::Seconds(30)), ElementsAre("broken: back"));
}

TEST_F(SessionTest, Watch_DaemonStaysAway_EndsTheEpoch) {
  script_.watch.push_back(absl::UnavailableError("refused"));
  script_.watch.push_back(absl::UnavailableError("still refused"));
  EXPECT_THAT(Heard(absl::Seconds(30)), ElementsAre("over: still refused"));
}

TEST_F(SessionTest, Watch_ItsThread_TakesNoSignals) {
  script_.watch.push_back(News(pb::WatchEpochResponse::JOB_OVER, "done"));
  sigset_t mask;
  sigemptyset(&mask);
  absl::Notification called;
  const auto watch = session_.Watch(Epoch(1), [&](EpochEvent, const std::string&) {
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    called.Notify();
  });
  called.WaitForNotification();
  EXPECT_TRUE(sigismember(&mask, SIGTERM));
}

TEST_F(SessionTest, Watch_Destroyed_EndsWithoutACall) {
  bool called = false;
  session_.Watch(Epoch(1), [&](EpochEvent, const std::string&) { called = true; }).reset();
  EXPECT_FALSE(called);
}

TEST_F(SessionTest, JoinNextWorld_CarriesTheWordOnTheLastWorld) {
  pb::JoinWorldRequest request = Request(1);
  request.set_worked(true);
  request.set_left_for("NCCL: no");
  request.set_lost_steps(3);
  request.set_lost_time_ms(1500);
  request.set_caused_by_peer(true);
  session_.JoinNextWorld(request, absl::Seconds(1)).IgnoreError();
  EXPECT_TRUE(script_.last_join.worked());
  EXPECT_EQ(script_.last_join.left_for(), "NCCL: no");
  EXPECT_EQ(script_.last_join.lost_steps(), 3u);
  EXPECT_EQ(script_.last_join.lost_time_ms(), 1500u);
  EXPECT_TRUE(script_.last_join.caused_by_peer());
}

TEST_F(SessionTest, ReportProgress_TellsOfTheNewestCommit) {
  session_.NoteCommit(7);
  ASSERT_TRUE(session_.ReportProgress(Epoch(2), absl::Seconds(1)).ok());
  EXPECT_EQ(script_.last_report.epoch(), 2u);
  EXPECT_EQ(script_.last_report.progress().commit(), 7u);
}

TEST_F(SessionTest, ReportFailure_CarriesTheWord) {
  ASSERT_TRUE(session_.ReportFailure(Epoch(2), {"ValueError: x", true, 7}, absl::Seconds(1)).ok());
  EXPECT_EQ(script_.last_report.failure().message(), "ValueError: x");
  EXPECT_TRUE(script_.last_report.failure().caused_by_peer());
  EXPECT_EQ(script_.last_report.failure().commit(), 7u);
  ASSERT_TRUE(session_.ReportFinished(Epoch(2), absl::Seconds(1)).ok());
  EXPECT_TRUE(script_.last_report.has_finished());
}

// Whatever a script raises, the daemon gets a text of a few KiB that is UTF-8.
TEST_F(SessionTest, LongTexts_AreShortened) {
  const std::string text = "bad record: \xff" + std::string(2000000, 'x') + " (a.csv)";
  ASSERT_TRUE(session_.ReportFailure(Epoch(2), {text}, absl::Seconds(1)).ok());
  script_.join.emplace();
  *script_.join->mutable_world() = TwoMembers();
  pb::JoinWorldRequest request = Request(1);
  request.set_left_for(text);
  ASSERT_TRUE(session_.JoinNextWorld(request, absl::Seconds(1)).ok());
  for (const std::string& told :
       {script_.last_report.failure().message(), script_.last_join.left_for()}) {
    EXPECT_LT(told.size(), 5000u);
    EXPECT_EQ(told.substr(0, 15), "bad record: \xef\xbf\xbd");
    EXPECT_EQ(told.substr(told.size() - 8), " (a.csv)");
  }
}

TEST_F(SessionTest, Progress_SaysWithWhatTheWorldBeganAndWhichCheckpointsThereAre) {
  session_.NoteCommit(CommitId(2, 9));
  ASSERT_TRUE(session_.ReportProgress(Epoch(2), absl::Seconds(1)).ok());
  const auto told = [this]() -> const pb::Progress& { return script_.last_report.progress(); };
  EXPECT_EQ(told().commit(), CommitId(2, 9));
  EXPECT_FALSE(told().has_began_with());
  EXPECT_FALSE(told().has_checkpoints());
  session_.NoteBegin(Epoch(2), CommitId(1, 7));
  session_.NoteCheckpoints({CommitId(1, 7), absl::Seconds(3), "/c/checkpoint-7-w1.hvd", ""});
  ASSERT_TRUE(session_.ReportProgress(Epoch(2), absl::Seconds(1)).ok());
  EXPECT_EQ(told().began_with(), CommitId(1, 7));
  EXPECT_EQ(told().checkpoints().commit(), CommitId(1, 7));
  EXPECT_GE(told().checkpoints().age_ms(), 3000u);
  EXPECT_EQ(told().checkpoints().place(), "/c/checkpoint-7-w1.hvd");
  session_.NoteCheckpoints({0, absl::InfiniteDuration(), "/c", "full"});
  ASSERT_TRUE(session_.ReportProgress(Epoch(3), absl::Seconds(1)).ok());
  EXPECT_FALSE(told().has_began_with()) << "that was another world";
  EXPECT_FALSE(told().checkpoints().has_age_ms());
  EXPECT_EQ(told().checkpoints().failure(), "full");
}

TEST_F(SessionTest, LastWords_EndTheConnectionAndLaterCallsMakeAnother) {
  EXPECT_EQ(script_.clients, 0);
  ASSERT_TRUE(session_.ReportProgress(Epoch(2), absl::Seconds(1)).ok());
  EXPECT_EQ(script_.clients, 1);
  ASSERT_TRUE(session_.ReportFinished(Epoch(2), absl::Seconds(1)).ok());
  EXPECT_EQ(script_.clients, 0);
  ASSERT_TRUE(session_.ReportFailure(Epoch(2), {"late"}, absl::Seconds(1)).ok());
  EXPECT_EQ(script_.clients, 0);
  script_.join.emplace();
  *script_.join->mutable_world() = TwoMembers();
  EXPECT_TRUE(Join(1).ok());
  EXPECT_EQ(script_.clients, 1);
}

}  // namespace
}  // namespace hvd::worker_runtime::session
