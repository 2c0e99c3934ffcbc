#include "rendezvous/server/rendezvous_service.h"

#include <future>
#include <memory>
#include <set>
#include <string>

#include "gtest/gtest.h"
#include "rendezvous/server/in_process_test_util.h"

namespace hvd {
namespace {

class RendezvousServiceTest : public testing::Test {
 protected:
  template <typename Response>
  struct Outcome {
    grpc::Status status;
    Response response;
  };

  // Makes the call on a thread of its own.
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

  static WorldMember Member() {
    WorldMember member;
    member.worker = {WorkerId(5), Incarnation(6)};
    member.host = "a";
    member.address = "10.0.0.1";
    member.control_port = 4000;
    member.rank = 1;
    member.local_rank = 2;
    member.local_size = 3;
    member.cross_rank = 4;
    member.cross_size = 8;
    return member;
  }

  Inbox<Event> events_;
  Membership::View view_;
  RendezvousService service_{
      {"job", "key", [this](Event event) { events_.Put(std::move(event)); },
       [this](std::function<void(const Membership::View&)> use) { use(view_); }}};
  InProcessServer server_{&service_};
  std::unique_ptr<pb::Rendezvous::Stub> stub_ = pb::Rendezvous::NewStub(server_.channel());
};

TEST_F(RendezvousServiceTest, JoinWorld_BecomesAnEvent_AndTheEffectItsAnswer) {
  auto request = From<pb::JoinWorldRequest>(5, 6);
  request.set_last_epoch(3);
  request.set_address("10.0.0.1");
  request.set_control_port(4000);
  auto outcome = Call(&pb::Rendezvous::Stub::JoinWorld, request);
  const auto event = NextEvent<JoinRequested>(events_);
  EXPECT_EQ(event.worker.id, WorkerId(5));
  EXPECT_EQ(event.worker.incarnation, Incarnation(6));
  EXPECT_EQ(event.last_epoch, Epoch(3));
  EXPECT_EQ(event.address, "10.0.0.1");
  EXPECT_EQ(event.control_port, 4000);
  service_.Handle(ReplyWorld{event.call, World{Epoch(4), {Member()}}});
  EXPECT_EQ(outcome.get().response.world().epoch(), 4u);
}

TEST_F(RendezvousServiceTest, ReplyWorld_CarriesEveryFieldOfAMember) {
  auto outcome = Call(&pb::Rendezvous::Stub::JoinWorld, From<pb::JoinWorldRequest>(5, 6));
  service_.Handle(ReplyWorld{NextEvent<JoinRequested>(events_).call, World{Epoch(4), {Member()}}});
  const pb::World world = outcome.get().response.world();
  ASSERT_EQ(world.members_size(), 1);
  EXPECT_EQ(world.members(0).ShortDebugString(),
            "worker { worker_id: 5 incarnation: 6 } host: \"a\" address: \"10.0.0.1\" "
            "control_port: 4000 rank: 1 local_rank: 2 local_size: 3 cross_rank: 4 cross_size: 8");
}

TEST_F(RendezvousServiceTest, ReplyWorld_SecretIsOfTheEpoch) {
  std::set<std::string> secrets;
  for (const uint64_t epoch : {1, 1, 2}) {
    auto outcome = Call(&pb::Rendezvous::Stub::JoinWorld, From<pb::JoinWorldRequest>(5, 6));
    service_.Handle(ReplyWorld{NextEvent<JoinRequested>(events_).call, World{Epoch(epoch), {}}});
    const std::string secret = outcome.get().response.world().secret();
    EXPECT_EQ(secret.size(), 32u);
    secrets.insert(secret);
  }
  EXPECT_EQ(secrets.size(), 2u);
}

TEST_F(RendezvousServiceTest, WatchEpoch_BecomesAnEvent_AndTheEffectItsAnswer) {
  for (const bool over : {false, true}) {
    auto request = From<pb::WatchEpochRequest>(5, 6);
    request.set_epoch(2);
    auto outcome = Call(&pb::Rendezvous::Stub::WatchEpoch, request);
    const auto event = NextEvent<WatchRequested>(events_);
    EXPECT_EQ(event.worker.id, WorkerId(5));
    EXPECT_EQ(event.epoch, Epoch(2));
    service_.Handle(ReplyWatch{event.call, over, "why"});
    const auto got = outcome.get();
    EXPECT_EQ(got.response.change(),
              over ? pb::WatchEpochResponse::JOB_OVER : pb::WatchEpochResponse::EPOCH_BROKEN);
    EXPECT_EQ(got.response.reason(), "why");
  }
}

TEST_F(RendezvousServiceTest, Exchange_BecomesAnEvent_AndTheEffectItsAnswer) {
  auto request = From<pb::ExchangeRequest>(5, 6);
  request.set_epoch(2);
  request.set_key("k");
  request.set_value(std::string("\0v", 2));
  auto outcome = Call(&pb::Rendezvous::Stub::Exchange, request);
  const auto event = NextEvent<ExchangeRequested>(events_);
  EXPECT_EQ(event.key, "k");
  EXPECT_EQ(event.value, std::string("\0v", 2));
  EXPECT_EQ(event.epoch, Epoch(2));
  service_.Handle(ReplyExchange{event.call, {"x", "y"}});
  const auto got = outcome.get();
  ASSERT_EQ(got.response.values_size(), 2);
  EXPECT_EQ(got.response.values(1), "y");
}

TEST_F(RendezvousServiceTest, Exchange_ValueOfAMebibytePasses_LargerIsRefused) {
  auto request = From<pb::ExchangeRequest>(5, 6);
  request.set_key("k");
  request.set_value(std::string(1 << 20, 'x'));
  auto fits = Call(&pb::Rendezvous::Stub::Exchange, request);
  service_.Handle(ReplyExchange{NextEvent<ExchangeRequested>(events_).call, {}});
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
  const auto event = NextEvent<Reported>(events_);
  EXPECT_TRUE(event.finished);
  EXPECT_EQ(event.epoch, Epoch(2));
  service_.Handle(ReplyStatus{event.call, absl::OkStatus()});
  EXPECT_TRUE(outcome.get().status.ok());
}

TEST_F(RendezvousServiceTest, Report_Failure_KeepsItsWords) {
  auto request = From<pb::ReportRequest>(5, 6);
  request.mutable_failure()->set_message("ValueError: x");
  request.mutable_failure()->set_caused_by_peer(true);
  auto outcome = Call(&pb::Rendezvous::Stub::Report, request);
  const auto event = NextEvent<Reported>(events_);
  EXPECT_FALSE(event.finished);
  EXPECT_EQ(event.failure, "ValueError: x");
  EXPECT_TRUE(event.caused_by_peer);
  service_.Handle(ReplyStatus{event.call, absl::NotFoundError("no worker 5")});
  EXPECT_EQ(outcome.get().status.error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(RendezvousServiceTest, Report_WithoutAWord_IsRefused) {
  const auto refused = Call(&pb::Rendezvous::Stub::Report, From<pb::ReportRequest>(5, 6)).get();
  EXPECT_EQ(refused.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(events_.empty());
}

TEST_F(RendezvousServiceTest, NoWorkerNamed_IsTheMachinesToJudge) {
  auto outcome = Call(&pb::Rendezvous::Stub::JoinWorld, pb::JoinWorldRequest());
  const auto event = NextEvent<JoinRequested>(events_);
  EXPECT_EQ(event.worker.id, WorkerId(0));
  service_.Handle(ReplyStatus{event.call, absl::NotFoundError("")});
  EXPECT_EQ(outcome.get().status.error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(RendezvousServiceTest, GetStatus_ShowsTheView) {
  view_.epoch = Epoch(3);
  view_.state = "running";
  view_.explanation = "all is well";
  view_.hosts = {{{"a", 2}, true, {{WorkerId(1), 0, 77, "running"}}}};
  const auto got = Call(&pb::Rendezvous::Stub::GetStatus, pb::GetStatusRequest()).get();
  EXPECT_EQ(got.response.ShortDebugString(),
            "job_id: \"job\" epoch: 3 state: \"running\" explanation: \"all is well\" hosts { "
            "host: \"a\" slots: 2 attached: true workers { worker_id: 1 pid: 77 state: "
            "\"running\" } }");
}

}  // namespace
}  // namespace hvd
