#include "rendezvous/server/parked_calls.h"

#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/synchronization/notification.h"
#include "grpcpp/generic/generic_stub.h"
#include "gtest/gtest.h"
#include "proto/rendezvous.grpc.pb.h"
#include "rendezvous/server/in_process_test_util.h"

namespace hvd::rendezvous::server {
namespace {

// A service whose calls all park.
class ParkingService final : public pb::Rendezvous::CallbackService {
 public:
  grpc::ServerUnaryReactor* JoinWorld(grpc::CallbackServerContext* context,
                                      const pb::JoinWorldRequest* request,
                                      pb::JoinWorldResponse* response) override {
    ParkedCall* const call = calls.Park(*context, *request, response);
    parked.Put(call->id());
    return call;
  }

  Inbox<membership::CallId> parked;
  Inbox<membership::CallId> cancelled;
  ParkedCalls calls{[this](membership::CallId id) { cancelled.Put(id); }};
};

class ParkedCallsTest : public testing::Test {
 protected:
  struct Outcome {
    grpc::Status status;
    pb::JoinWorldResponse response;
  };

  std::future<Outcome> CallAsync(grpc::ClientContext* context) {
    return std::async(std::launch::async, [this, context] {
      Outcome outcome;
      outcome.status = stub_->JoinWorld(context, pb::JoinWorldRequest(), &outcome.response);
      return outcome;
    });
  }

  static void SetEpochSeven(pb::JoinWorldResponse& response) {
    response.mutable_world()->set_epoch(7);
  }

  ParkingService service_;
  InProcessServer server_{&service_};
  std::unique_ptr<pb::Rendezvous::Stub> stub_ = pb::Rendezvous::NewStub(server_.channel());
  grpc::ClientContext context_;
};

TEST_F(ParkedCallsTest, Answer_EndsTheCallWithIt) {
  auto outcome = CallAsync(&context_);
  service_.calls.Answer<pb::JoinWorldResponse>(service_.parked.Next(), SetEpochSeven);
  const Outcome got = outcome.get();
  EXPECT_TRUE(got.status.ok());
  EXPECT_EQ(got.response.world().epoch(), 7u);
}

TEST_F(ParkedCallsTest, Answer_OfAnotherKind_EndsTheCallWithInternal) {
  auto outcome = CallAsync(&context_);
  service_.calls.Answer<pb::ReportResponse>(service_.parked.Next(), [](pb::ReportResponse&) {});
  EXPECT_EQ(outcome.get().status.error_code(), grpc::StatusCode::INTERNAL);
}

TEST_F(ParkedCallsTest, Finish_EndsTheCallWithTheStatus) {
  auto outcome = CallAsync(&context_);
  service_.calls.Finish(service_.parked.Next(), absl::NotFoundError("worker 3"));
  const grpc::Status status = outcome.get().status;
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(status.error_message(), "worker 3");
}

TEST_F(ParkedCallsTest, EndedTwice_TheFirstCounts) {
  auto outcome = CallAsync(&context_);
  const membership::CallId id = service_.parked.Next();
  service_.calls.Finish(id, absl::NotFoundError(""));
  service_.calls.Finish(id, absl::OkStatus());
  service_.calls.Answer<pb::JoinWorldResponse>(id, SetEpochSeven);
  EXPECT_EQ(outcome.get().status.error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(ParkedCallsTest, ClientCancels_IsReportedAndCanNotBeAnswered) {
  auto outcome = CallAsync(&context_);
  const membership::CallId id = service_.parked.Next();
  context_.TryCancel();
  EXPECT_EQ(service_.cancelled.Next(), id);
  EXPECT_EQ(outcome.get().status.error_code(), grpc::StatusCode::CANCELLED);
  service_.calls.Answer<pb::JoinWorldResponse>(id, SetEpochSeven);
}

TEST_F(ParkedCallsTest, Close_EndsParkedAndLaterCalls) {
  auto outcome = CallAsync(&context_);
  service_.parked.Next();
  service_.calls.Close(absl::FailedPreconditionError("over"));
  EXPECT_EQ(outcome.get().status.error_message(), "over");
  grpc::ClientContext later;
  EXPECT_EQ(CallAsync(&later).get().status.error_message(), "over");
  EXPECT_TRUE(service_.cancelled.empty());
}

// A call that its client cancels in the end.
class CancelledCall final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  CancelledCall(const std::shared_ptr<grpc::Channel>& channel, const pb::JoinWorldRequest& request)
      : stub_(channel) {
    const grpc::Slice slice(request.SerializeAsString());
    request_ = grpc::ByteBuffer(&slice, 1);
    stub_.PrepareBidiStreamingCall(&context_, "/hvd.pb.Rendezvous/JoinWorld", grpc::StubOptions(),
                                   this);
    StartWriteLast(&request_, grpc::WriteOptions());
    StartCall();
  }
  ~CancelledCall() override {
    context_.TryCancel();
    done_.WaitForNotification();
  }

  void OnDone(const grpc::Status&) override { done_.Notify(); }

 private:
  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::ByteBuffer request_;
  absl::Notification done_;
};

pb::JoinWorldRequest RequestOf(uint64_t worker, size_t bytes = 0) {
  pb::JoinWorldRequest request;
  request.mutable_worker()->set_worker_id(worker);
  request.set_left_for(std::string(bytes, 'x'));
  return request;
}

// Of the limit; a server takes no larger message by default.
constexpr size_t kThird = transport::CallMemory::kMostOfAWorker / 3 + 1;

TEST_F(ParkedCallsTest, RequestsOfAWorkerThatAreParked_AreBounded) {
  const auto has_room = [&](uint64_t worker) {
    return service_.calls.CheckRoom(grpc::CallbackServerContext(), RequestOf(worker)).ok();
  };
  std::optional<CancelledCall> first(std::in_place, server_.channel(), RequestOf(1, kThird));
  std::optional<CancelledCall> others[2];
  for (auto& other : others) other.emplace(server_.channel(), RequestOf(1, kThird));
  for (int i = 0; i < 3; ++i) service_.parked.Next();
  EXPECT_FALSE(has_room(1));
  EXPECT_TRUE(has_room(2));
  first.reset();
  service_.cancelled.Next();
  while (!has_room(1)) std::this_thread::yield();
}

}  // namespace
}  // namespace hvd::rendezvous::server
