#include "rendezvous/journal/request_event.h"

#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "proto/rendezvous.pb.h"

namespace hvd::rendezvous::journal {
namespace {

const membership::CallId kCall(8);

template <typename Request>
Request From(uint64_t worker, uint64_t incarnation) {
  Request request;
  request.mutable_worker()->set_worker_id(worker);
  request.mutable_worker()->set_incarnation(incarnation);
  return request;
}

// Every field of the request, with numbers that have all bits of their fields.
TEST(RequestEventTest, Join_HasAllThatTheRequestHas) {
  auto request = From<pb::JoinWorldRequest>(3, ~uint64_t{0});
  request.set_last_epoch(2);
  request.set_address("10.0.0.1");
  request.set_port(65535);
  request.set_may_defer(true);
  request.set_commit(CommitId(3, 12));
  request.set_worked(true);
  request.set_left_for("NCCL: no");
  request.set_lost_steps(7);
  request.set_lost_time_ms(1234);
  request.set_caused_by_peer(true);
  request.set_unreached(0);
  request.set_starts_anew(true);
  const auto event = ToEvent<membership::JoinRequested>(kCall, request);
  EXPECT_EQ(event.call, kCall);
  EXPECT_EQ(event.worker.id, WorkerId(3));
  EXPECT_EQ(event.worker.incarnation, Incarnation(~uint64_t{0}));
  EXPECT_EQ(event.last_epoch, Epoch(2));
  EXPECT_EQ(event.address, "10.0.0.1");
  EXPECT_EQ(event.port, 65535);
  EXPECT_TRUE(event.may_defer);
  EXPECT_EQ(event.commit, CommitId(3, 12));
  EXPECT_TRUE(event.worked);
  EXPECT_EQ(event.left_for, "NCCL: no");
  EXPECT_EQ(event.lost_steps, 7u);
  EXPECT_EQ(event.lost_time, absl::Milliseconds(1234));
  EXPECT_TRUE(event.caused_by_peer);
  EXPECT_EQ(event.unreached, 0);
  EXPECT_TRUE(event.starts_anew);
}

TEST(RequestEventTest, Join_OptionalFieldThatIsNotSet_IsEmpty) {
  const auto event = ToEvent<membership::JoinRequested>(kCall, pb::JoinWorldRequest());
  EXPECT_EQ(event.unreached, std::nullopt);
  EXPECT_EQ(event.worker.id, WorkerId(0));
  EXPECT_EQ(event.lost_time, absl::ZeroDuration());
}

// What a worker of an earlier build sends: the numbers of the fields stay.
TEST(RequestEventTest, Join_IsReadByTheNumbersOfItsFields) {
  const std::string recorded(
      "\x0a\x04\x08\x03\x10\x04\x10\x02\x1a\x08"
      "10.0.0.1"
      "\x20\xa0\x1f\x28\x01\x30\x05\x38\x01\x42\x01x\x48\x07\x50\xd2\x09\x58\x01\x60\x01");
  pb::JoinWorldRequest request;
  ASSERT_TRUE(request.ParseFromString(recorded));
  const auto event = ToEvent<membership::JoinRequested>(kCall, request);
  EXPECT_EQ(event.worker.id, WorkerId(3));
  EXPECT_EQ(event.worker.incarnation, Incarnation(4));
  EXPECT_EQ(event.last_epoch, Epoch(2));
  EXPECT_EQ(event.address, "10.0.0.1");
  EXPECT_EQ(event.port, 4000);
  EXPECT_TRUE(event.may_defer);
  EXPECT_EQ(event.commit, 5u);
  EXPECT_TRUE(event.worked);
  EXPECT_EQ(event.left_for, "x");
  EXPECT_EQ(event.lost_steps, 7u);
  EXPECT_EQ(event.lost_time, absl::Milliseconds(1234));
  EXPECT_TRUE(event.caused_by_peer);
  EXPECT_EQ(event.unreached, 1);
  EXPECT_EQ(request.SerializeAsString(), recorded);
}

TEST(RequestEventTest, Watch_HasAllThatTheRequestHas) {
  auto request = From<pb::WatchEpochRequest>(3, 4);
  request.set_epoch(2);
  request.set_knows_of_change(true);
  const auto event = ToEvent<membership::WatchRequested>(kCall, request);
  EXPECT_EQ(event.call, kCall);
  EXPECT_EQ(event.worker.incarnation, Incarnation(4));
  EXPECT_EQ(event.epoch, Epoch(2));
  EXPECT_TRUE(event.knows_of_change);
}

TEST(RequestEventTest, Exchange_HasAllThatTheRequestHas) {
  auto request = From<pb::ExchangeRequest>(3, 4);
  request.set_epoch(2);
  request.set_key("k");
  request.set_value(std::string("\0\xff", 2));
  const auto event = ToEvent<membership::ExchangeRequested>(kCall, request);
  EXPECT_EQ(event.call, kCall);
  EXPECT_EQ(event.worker.id, WorkerId(3));
  EXPECT_EQ(event.epoch, Epoch(2));
  EXPECT_EQ(event.key, "k");
  EXPECT_EQ(event.value, std::string("\0\xff", 2));
}

TEST(RequestEventTest, Stall_HasAllThatTheRequestHas) {
  auto request = From<pb::ReportStallRequest>(3, 4);
  request.set_epoch(2);
  request.set_waited_ms(~uint32_t{0});
  request.set_give_up(true);
  pb::StalledOperations& waiting = *request.add_waiting();
  waiting.set_what("allreduce 'a'");
  waiting.add_missing(1);
  waiting.add_missing(5);
  const auto event = ToEvent<membership::StallReported>(kCall, request);
  EXPECT_EQ(event.call, kCall);
  EXPECT_EQ(event.worker.id, WorkerId(3));
  EXPECT_EQ(event.epoch, Epoch(2));
  EXPECT_EQ(event.waited, absl::Milliseconds(~uint32_t{0}));
  EXPECT_TRUE(event.give_up);
  ASSERT_EQ(event.waiting.size(), 1u);
  EXPECT_EQ(event.waiting[0].what, "allreduce 'a'");
  EXPECT_EQ(event.waiting[0].missing, (std::vector<int>{1, 5}));
}

}  // namespace
}  // namespace hvd::rendezvous::journal
