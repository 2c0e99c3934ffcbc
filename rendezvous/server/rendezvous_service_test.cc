#include "rendezvous/server/rendezvous_service.h"

#include <unistd.h>

#include <future>
#include <memory>
#include <set>
#include <string>

#include "gtest/gtest.h"
#include "rendezvous/server/in_process_test_util.h"

namespace hvd::rendezvous::server {
namespace {

class RendezvousServiceTest : public testing::Test {
 protected:
  template <typename Response>
  struct Outcome {
    grpc::Status status;
    Response response;
  };

  // Makes the call on a separate thread.
  template <typename Request, typename Response>
  std::future<Outcome<Response>> Call(
      grpc::Status (pb::Rendezvous::Stub::*method)(grpc::ClientContext*, const Request&, Response*),
      Request request) {
    return std::async(std::launch::async, [this, method, request] {
      grpc::ClientContext context;
      Outcome<Response> outcome;
      outcome.status = (stub_.get()->*method)(&context, request, &outcome.response);
      return outcome;
    });
  }

  template <typename Request>
  static Request From(uint64_t worker, uint64_t incarnation) {
    Request request;
    request.mutable_worker()->set_worker_id(worker);
    request.mutable_worker()->set_incarnation(incarnation);
    return request;
  }

  static pb::JoinWorldRequest Join() {
    auto request = From<pb::JoinWorldRequest>(5, 6);
    request.set_address("10.0.0.1");
    request.set_port(4000);
    return request;
  }

  static membership::WorldMember Member() {
    membership::WorldMember member;
    member.worker = {WorkerId(5), Incarnation(6)};
    member.host = "a";
    member.address = "10.0.0.1";
    member.port = 4000;
    member.place = {1, 9, 2, 3, 4, 8};
    return member;
  }

  static std::shared_ptr<const std::vector<std::string>> Values(std::vector<std::string> values) {
    return std::make_shared<const std::vector<std::string>>(std::move(values));
  }
  static membership::WorldPtr WorldOf(uint64_t epoch,
                                      std::vector<membership::WorldMember> members) {
    return std::make_shared<const membership::World>(
        membership::World{Epoch(epoch), std::move(members)});
  }
  // A world with one member more than are sent in full.
  static membership::WorldPtr LargeWorld() {
    std::vector<membership::WorldMember> members(RendezvousService::kMostMembersTold + 1);
    for (size_t rank = 0; rank < members.size(); ++rank) {
      members[rank].place.rank = static_cast<int>(rank);
      members[rank].place.size = static_cast<int>(members.size());
    }
    return WorldOf(4, std::move(members));
  }

  RendezvousServiceOptions Options() {
    RendezvousServiceOptions options;
    options.secret_key = "key";
    options.elastic = true;
    options.post = [this](membership::Event event) { events_.Put(std::move(event)); };
    options.check_room = [] { return absl::OkStatus(); };
    options.world = [this](const std::function<void(const membership::WorldPtr&)>& use) {
      use(world_);
    };
    options.report = [this](const std::function<void(const reporting::JobReport&)>& use) {
      use(report_);
    };
    options.command = [] { return "python train.py"; };
    return options;
  }

  static pb::DrainRequest DrainOf(const std::string& host) {
    pb::DrainRequest request;
    request.set_host(host);
    request.set_grace_ms(1500);
    return request;
  }

  Inbox<membership::Event> events_;
  reporting::JobReport report_;
  membership::WorldPtr world_;
  RendezvousService service_{Options()};
  InProcessServer server_{&service_};
  std::unique_ptr<pb::Rendezvous::Stub> stub_ = pb::Rendezvous::NewStub(server_.channel());
};

TEST_F(RendezvousServiceTest, JoinWorld_BecomesAnEvent_AndTheEffectItsAnswer) {
  auto request = Join();
  request.set_last_epoch(3);
  auto outcome = Call(&pb::Rendezvous::Stub::JoinWorld, request);
  const auto event = NextEvent<membership::JoinRequested>(events_);
  EXPECT_EQ(event.worker.id, WorkerId(5));
  EXPECT_EQ(event.worker.incarnation, Incarnation(6));
  EXPECT_EQ(event.last_epoch, Epoch(3));
  EXPECT_EQ(event.address, "10.0.0.1");
  EXPECT_EQ(event.port, 4000);
  service_.Handle(membership::ReplyWorld{event.call, WorldOf(4, {Member()})});
  EXPECT_EQ(outcome.get().response.world().epoch(), 4u);
}

// See request_checks_test; none of them becomes an event.
TEST_F(RendezvousServiceTest, RequestsWithImpossibleValues_AreRefused) {
  const auto code = [&](auto method, const auto& request) {
    return Call(method, request).get().status.error_code();
  };
  auto join = Join();
  join.set_port((1u << 30) + 1);
  EXPECT_EQ(code(&pb::Rendezvous::Stub::JoinWorld, join), grpc::StatusCode::INVALID_ARGUMENT);
  auto exchange = From<pb::ExchangeRequest>(5, 6);
  exchange.set_key("k");
  for (int i = 0; i < 2; ++i) exchange.mutable_selection()->add_ranks(0);
  EXPECT_EQ(code(&pb::Rendezvous::Stub::Exchange, exchange), grpc::StatusCode::INVALID_ARGUMENT);
  auto progress = From<pb::ReportRequest>(5, 6);
  progress.mutable_progress()->set_commit_age_ms(~uint64_t{0});
  EXPECT_EQ(code(&pb::Rendezvous::Stub::Report, progress), grpc::StatusCode::INVALID_ARGUMENT);
  auto stall = From<pb::ReportStallRequest>(5, 6);
  stall.add_waiting()->add_missing(-1);
  EXPECT_EQ(code(&pb::Rendezvous::Stub::ReportStall, stall), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(events_.empty());
}

TEST_F(RendezvousServiceTest, ReplyWorld_CarriesEveryFieldOfAMember) {
  auto outcome = Call(&pb::Rendezvous::Stub::JoinWorld, Join());
  service_.Handle(membership::ReplyWorld{NextEvent<membership::JoinRequested>(events_).call,
                                         WorldOf(4, {Member()})});
  const pb::World world = outcome.get().response.world();
  ASSERT_EQ(world.members_size(), 1);
  EXPECT_EQ(world.members(0).ShortDebugString(),
            "worker { worker_id: 5 incarnation: 6 } host: \"a\" address: \"10.0.0.1\" "
            "port: 4000 placement { rank: 1 size: 9 local_rank: 2 local_size: 3 cross_rank: 4 "
            "cross_size: 8 }");
}

TEST_F(RendezvousServiceTest, ReplyWorld_OfALargeWorld_NamesTheFirstAndTheCaller) {
  for (const int rank : {0, 7}) {
    auto outcome = Call(&pb::Rendezvous::Stub::JoinWorld, Join());
    service_.Handle(membership::ReplyWorld{NextEvent<membership::JoinRequested>(events_).call,
                                           LargeWorld(), rank});
    const pb::World world = outcome.get().response.world();
    EXPECT_EQ(world.members(0).placement().size(),
              static_cast<int>(RendezvousService::kMostMembersTold) + 1);
    ASSERT_EQ(world.members_size(), rank == 0 ? 1 : 2);
    EXPECT_EQ(world.members(0).placement().rank(), 0);
    EXPECT_EQ(world.members(world.members_size() - 1).placement().rank(), rank);
  }
}

TEST_F(RendezvousServiceTest, GetMembers_OfTheNewestEpoch_NamesAll) {
  world_ = LargeWorld();
  pb::GetMembersRequest request;
  request.set_epoch(4);
  const auto outcome = Call(&pb::Rendezvous::Stub::GetMembers, request).get();
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.error_message();
  ASSERT_EQ(outcome.response.members_size(),
            static_cast<int>(RendezvousService::kMostMembersTold) + 1);
  EXPECT_EQ(outcome.response.members(9).placement().rank(), 9);
}

TEST_F(RendezvousServiceTest, GetMembers_OfAnotherEpoch_Fails) {
  world_ = LargeWorld();
  pb::GetMembersRequest request;
  request.set_epoch(3);
  EXPECT_EQ(Call(&pb::Rendezvous::Stub::GetMembers, request).get().status.error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(RendezvousServiceTest, ReplyWorld_SecretIsOfTheEpoch) {
  std::set<std::string> secrets;
  for (const uint64_t epoch : {1, 1, 2}) {
    auto outcome = Call(&pb::Rendezvous::Stub::JoinWorld, Join());
    service_.Handle(membership::ReplyWorld{NextEvent<membership::JoinRequested>(events_).call,
                                           WorldOf(epoch, {})});
    const std::string secret = outcome.get().response.world().secret();
    EXPECT_EQ(secret.size(), 32u);
    secrets.insert(secret);
  }
  EXPECT_EQ(secrets.size(), 2u);
}

TEST_F(RendezvousServiceTest, WatchEpoch_BecomesAnEvent_AndTheEffectItsAnswer) {
  const std::pair<membership::EpochChange, pb::WatchEpochResponse::Change> changes[] = {
      {membership::EpochChange::kBroken, pb::WatchEpochResponse::EPOCH_BROKEN},
      {membership::EpochChange::kChanging, pb::WatchEpochResponse::EPOCH_CHANGING},
      {membership::EpochChange::kJobOver, pb::WatchEpochResponse::JOB_OVER},
  };
  for (const auto& [change, expected] : changes) {
    auto request = From<pb::WatchEpochRequest>(5, 6);
    request.set_epoch(2);
    request.set_knows_of_change(change == membership::EpochChange::kBroken);
    auto outcome = Call(&pb::Rendezvous::Stub::WatchEpoch, request);
    const auto event = NextEvent<membership::WatchRequested>(events_);
    EXPECT_EQ(event.worker.id, WorkerId(5));
    EXPECT_EQ(event.epoch, Epoch(2));
    EXPECT_EQ(event.knows_of_change, change == membership::EpochChange::kBroken);
    service_.Handle(membership::ReplyWatch{event.call, change, "why"});
    const auto got = outcome.get();
    EXPECT_EQ(got.response.change(), expected);
    EXPECT_EQ(got.response.reason(), "why");
  }
}

TEST_F(RendezvousServiceTest, JoinWorld_MayBeDeferredOrReleased) {
  auto request = Join();
  request.set_may_defer(true);
  request.set_commit(12);
  auto deferred = Call(&pb::Rendezvous::Stub::JoinWorld, request);
  const auto event = NextEvent<membership::JoinRequested>(events_);
  EXPECT_TRUE(event.may_defer);
  EXPECT_EQ(event.commit, 12u);
  service_.Handle(membership::ReplyDeferred{event.call, Member()});
  const auto got = deferred.get();
  EXPECT_EQ(got.response.deferred().member().placement().rank(), 1);
  EXPECT_EQ(got.response.deferred().member().placement().size(), 9);
  auto released = Call(&pb::Rendezvous::Stub::JoinWorld, request);
  service_.Handle(
      membership::ReplyReleased{NextEvent<membership::JoinRequested>(events_).call, "drained"});
  EXPECT_EQ(released.get().response.released().reason(), "drained");
}

TEST_F(RendezvousServiceTest, Exchange_BecomesAnEvent_AndTheEffectItsAnswer) {
  auto request = From<pb::ExchangeRequest>(5, 6);
  request.set_epoch(2);
  request.set_key("k");
  request.set_value(std::string("\0v", 2));
  auto outcome = Call(&pb::Rendezvous::Stub::Exchange, request);
  const auto event = NextEvent<membership::ExchangeRequested>(events_);
  EXPECT_EQ(event.key, "k");
  EXPECT_EQ(event.value, std::string("\0v", 2));
  EXPECT_EQ(event.epoch, Epoch(2));
  service_.Handle(membership::ReplyExchange{event.call, Values({"x", "y"})});
  const auto got = outcome.get();
  ASSERT_EQ(got.response.values_size(), 2);
  EXPECT_EQ(got.response.values(1), "y");
}

// What each member gets must not grow with the number of members.
TEST_F(RendezvousServiceTest, Exchange_WithASelection_AnswersWithItAlone) {
  auto request = From<pb::ExchangeRequest>(5, 6);
  request.set_key("k");
  for (const uint32_t rank : {2, 0, 9}) request.mutable_selection()->add_ranks(rank);
  auto outcome = Call(&pb::Rendezvous::Stub::Exchange, request);
  service_.Handle(membership::ReplyExchange{NextEvent<membership::ExchangeRequested>(events_).call,
                                            Values({"x", "y", "z"})});
  const auto got = outcome.get();
  ASSERT_EQ(got.response.values_size(), 2);
  EXPECT_EQ(got.response.values(0), "z");
  EXPECT_EQ(got.response.values(1), "x");
  EXPECT_FALSE(got.response.all_equal());
}

TEST_F(RendezvousServiceTest, Exchange_ForNobodysValue_SaysWhetherAllAreTheSame) {
  const std::pair<std::vector<std::string>, bool> rounds[] = {
      {{"x", "x", "x"}, true}, {{"x", "x", "y"}, false}, {{"x"}, true}};
  for (const auto& [values, all_equal] : rounds) {
    auto request = From<pb::ExchangeRequest>(5, 6);
    request.set_key("k");
    request.mutable_selection();
    auto outcome = Call(&pb::Rendezvous::Stub::Exchange, request);
    service_.Handle(membership::ReplyExchange{
        NextEvent<membership::ExchangeRequested>(events_).call, Values(values)});
    const auto got = outcome.get();
    EXPECT_EQ(got.response.values_size(), 0);
    EXPECT_EQ(got.response.all_equal(), all_equal) << values.size();
  }
}

TEST_F(RendezvousServiceTest, Exchange_ValueOfAMebibytePasses_LargerIsRefused) {
  auto request = From<pb::ExchangeRequest>(5, 6);
  request.set_key("k");
  request.set_value(std::string(1 << 20, 'x'));
  auto fits = Call(&pb::Rendezvous::Stub::Exchange, request);
  service_.Handle(membership::ReplyExchange{NextEvent<membership::ExchangeRequested>(events_).call,
                                            Values({})});
  EXPECT_TRUE(fits.get().status.ok());
  request.mutable_value()->push_back('x');
  const auto refused = Call(&pb::Rendezvous::Stub::Exchange, request).get();
  EXPECT_EQ(refused.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(events_.empty());
}

TEST_F(RendezvousServiceTest, Exchange_NoKey_IsRefused) {
  const auto refused = Call(&pb::Rendezvous::Stub::Exchange, From<pb::ExchangeRequest>(5, 6)).get();
  EXPECT_EQ(refused.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(events_.empty());
}

TEST_F(RendezvousServiceTest, Report_Finished_IsAnsweredByStatus) {
  auto request = From<pb::ReportRequest>(5, 6);
  request.set_epoch(2);
  request.mutable_finished();
  auto outcome = Call(&pb::Rendezvous::Stub::Report, request);
  const auto event = NextEvent<membership::Reported>(events_);
  EXPECT_TRUE(event.finished);
  EXPECT_EQ(event.epoch, Epoch(2));
  service_.Handle(membership::ReplyStatus{event.call, absl::OkStatus()});
  EXPECT_TRUE(outcome.get().status.ok());
}

TEST_F(RendezvousServiceTest, Report_Failure_KeepsItsWords) {
  auto request = From<pb::ReportRequest>(5, 6);
  request.mutable_failure()->set_message("ValueError: x");
  request.mutable_failure()->set_caused_by_peer(true);
  auto outcome = Call(&pb::Rendezvous::Stub::Report, request);
  const auto event = NextEvent<membership::Reported>(events_);
  EXPECT_FALSE(event.finished);
  EXPECT_EQ(event.failure, "ValueError: x");
  EXPECT_TRUE(event.caused_by_peer);
  service_.Handle(membership::ReplyStatus{event.call, absl::NotFoundError("no worker 5")});
  EXPECT_EQ(outcome.get().status.error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(RendezvousServiceTest, Report_WithoutAWord_IsRefused) {
  const auto refused = Call(&pb::Rendezvous::Stub::Report, From<pb::ReportRequest>(5, 6)).get();
  EXPECT_EQ(refused.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(events_.empty());
}

TEST_F(RendezvousServiceTest, NoWorkerNamed_IsTheMachinesToJudge) {
  auto request = Join();
  request.clear_worker();
  auto outcome = Call(&pb::Rendezvous::Stub::JoinWorld, request);
  const auto event = NextEvent<membership::JoinRequested>(events_);
  EXPECT_EQ(event.worker.id, WorkerId(0));
  service_.Handle(membership::ReplyStatus{event.call, absl::NotFoundError("")});
  EXPECT_EQ(outcome.get().status.error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(RendezvousServiceTest, GetStatus_ShowsTheReport) {
  report_.job_id = "job";
  report_.view.epoch = Epoch(3);
  report_.view.state = lifecycle::JobState::kRunning;
  report_.view.explanation = "all is well";
  report_.view.min_workers = 1;
  report_.view.max_workers = 4;
  report_.view.size = 2;
  report_.view.failures = 5;
  report_.view.failures_left = 6;
  report_.view.hosts = {{{"a", 2},
                         true,
                         "draining",
                         absl::FromUnixMillis(14001),
                         {{WorkerId(1), 0, 77, lifecycle::WorkerState::kRunning}}}};
  membership::Notice notice;
  notice.kind = membership::Notice::Kind::kWorldFormed;
  notice.text = "2 workers";
  report_.history.Observe(notice, absl::FromUnixSeconds(1));
  report_.now = absl::FromUnixSeconds(3);
  auto got = Call(&pb::Rendezvous::Stub::GetStatus, pb::GetStatusRequest()).get();
  EXPECT_EQ(got.response.daemon_pid(), getpid());
  got.response.clear_daemon_pid();
  got.response.clear_daemon_host();
  EXPECT_EQ(got.response.ShortDebugString(),
            "job_id: \"job\" epoch: 3 state: \"running\" explanation: \"all is well\" hosts { "
            "host: \"a\" slots: 2 attached: true workers { worker_id: 1 pid: 77 state: "
            "\"running\" } condition: \"draining; what is left is stopped in 12s\" } min_workers: "
            "1 max_workers: 4 size: 2 "
            "worlds: 1 failures: 5 failures_left: 6 recent { kind: \"world_formed\" text: "
            "\"2 workers\" age_ms: 2000 } command: \"python train.py\"");
}

TEST_F(RendezvousServiceTest, Drain_OfAHostThatTakesPart_BecomesAnEvent) {
  report_.view.hosts = {{{"a", 2}, true, "", absl::InfiniteFuture(), {}},
                        {{"b", 2}, false, "", absl::InfiniteFuture(), {}, /*awaited=*/true}};
  EXPECT_TRUE(Call(&pb::Rendezvous::Stub::Drain, DrainOf("b")).get().status.ok());
  EXPECT_EQ(NextEvent<membership::HostDraining>(events_).host, "b");
  EXPECT_TRUE(Call(&pb::Rendezvous::Stub::Drain, DrainOf("a")).get().status.ok());
  const auto event = NextEvent<membership::HostDraining>(events_);
  EXPECT_EQ(event.host, "a");
  EXPECT_EQ(event.grace, absl::Milliseconds(1500));
  EXPECT_EQ(event.reason, "it was asked to");
}

TEST_F(RendezvousServiceTest, Drain_ThatCantBe_IsRefused) {
  report_.view.hosts = {{{"a", 2}, true, "", absl::InfiniteFuture(), {}}};
  EXPECT_EQ(Call(&pb::Rendezvous::Stub::Drain, DrainOf("b")).get().status.error_code(),
            grpc::StatusCode::NOT_FOUND);
  report_.view.hosts.push_back({{"c", 2}, false, "", absl::InfiniteFuture(), {}});
  EXPECT_EQ(Call(&pb::Rendezvous::Stub::Drain, DrainOf("c")).get().status.error_message(),
            "host c is not there: its agent has not attached, or has left");
  report_.view.state = lifecycle::JobState::kFailed;
  EXPECT_EQ(Call(&pb::Rendezvous::Stub::Drain, DrainOf("a")).get().status.error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_TRUE(events_.empty());
}

TEST_F(RendezvousServiceTest, Drain_OfAStaticJob_IsRefused) {
  RendezvousServiceOptions options = Options();
  options.elastic = false;
  RendezvousService service(options);
  InProcessServer server(&service);
  const auto stub = pb::Rendezvous::NewStub(server.channel());
  grpc::ClientContext context;
  pb::DrainResponse response;
  EXPECT_EQ(stub->Drain(&context, DrainOf("a"), &response).error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
}

}  // namespace
}  // namespace hvd::rendezvous::server
